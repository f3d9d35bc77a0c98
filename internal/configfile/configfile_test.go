package configfile

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/golden"
)

// sample has a field of every type that a configuration may have.
type sample struct {
	Name    string            `config:"name" default:"nobody"`
	Level   string            `config:"level" default:"info" env:"LOG_LEVEL"`
	Enabled bool              `config:"enabled" default:"true"`
	Maybe   *bool             `config:"maybe"`
	Factor  float64           `config:"factor" default:"1.6"`
	Size    Bytes             `config:"size" default:"8MiB"`
	Grace   time.Duration     `config:"grace" default:"10m"`
	Words   []string          `config:"words" default:"timeout,deadline exceeded"`
	Numbers []int             `config:"numbers"`
	Labels  map[string]string `config:"labels"`
	Server  sampleServer      `config:"server"`
	Entries []sampleEntry     `config:"entries"`
	Future  sampleFuture      `config:"future,ignored,warn"`
	Other   Ignored           `config:"other,ignored,warn"`
	Spring  struct {
		Config struct {
			Import Imports `config:"import"`
		} `config:"config"`
	} `config:"spring"`
}

type sampleServer struct {
	Port     int    `config:"port" default:"7002"`
	KeyFile  string `config:"keyFile,alias=key"`
	Password Secret `config:"password,alias=pass"`
	Tomcat   struct {
		Ours string `config:"ours"`
	} `config:"tomcat"`
	TLS struct {
		Enabled    bool   `config:"enabled"`
		ServerName string `config:"serverName"`
	} `config:"tls"`
}

type sampleEntry struct {
	Name     string       `config:"name"`
	TryTimes int          `config:"tryTimes" default:"3"`
	Inner    *sampleInner `config:"inner"`
}

type sampleInner struct {
	Depth int `config:"depth" default:"1"`
}

type sampleFuture struct {
	Speed int    `config:"speed"`
	Token Secret `config:"token"`
}

var sampleEnv = map[string]string{
	"HOME_TOWN":                "Delft",
	"SECRET":                   "hunter2",
	"LOG_LEVEL":                "debug",
	"T_SERVER_TLS_SERVERNAME":  "from.env",
	"T_NUMBERS":                "1, 2",
	"DOLLARS":                  "${not.expanded}",
	"EMPTY":                    "",
	"A_URL_WITH_EQUALS":        "http://h:80/?a=b&c=d",
	"SERVER_PORT":              "tcp://10.0.0.1:80", // as Kubernetes injects it
	"T_LABELS":                 "can't be set that way",
	"T_ENTRIES_NAME":           "can't be set that way",
	"T_UNKNOWN_IN_ENVIRONMENT": "is nobody's business",
}

var sampleOptions = Options{
	Env:       func(name string) (string, bool) { v, ok := sampleEnv[name]; return v, ok },
	EnvPrefix: "T_",
	Renames: []Rename{{From: "old.server", To: "server"}, {From: "older.server", To: "server"}, {From: "old.cache.words", To: "words"},
		{From: "old.graceMs", To: "grace", Unit: "ms"}},
	OtherProductKeys: []string{"spring", "server.tomcat", "level"},
}

// TestFilesParseAsRecorded reads each testdata/*.yml and compares problems, settings and unused keys with
// the .txt file beside it.
func TestFilesParseAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no test files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var s sample
			report := load(Search{File: file}, sampleOptions, &s)
			golden.Compare(t, strings.TrimSuffix(file, ".yml")+".txt", describe(&s, report))
		})
	}
}

// describe prints the result of reading a file, without settings that have their defaults.
func describe(config any, r *Report) string {
	var out strings.Builder
	slices.SortStableFunc(r.Problems, byPosition)
	for _, p := range r.Problems {
		fmt.Fprintf(&out, "problem %s [%s]\n", p, p.Path)
	}
	for _, kv := range Effective(config, r) {
		if kv.From != "default" {
			fmt.Fprintf(&out, "%s\n", kv)
		}
	}
	for _, unused := range r.Unused(nil) {
		fmt.Fprintf(&out, "unused %s\n", unused)
	}
	for _, notice := range r.Notices {
		fmt.Fprintf(&out, "notice %s\n", notice)
	}
	return out.String()
}

func TestEmptyFileHasDefaults(t *testing.T) {
	var s sample
	if err := Parse("empty.yml", nil, Options{}, &s).Err(); err != nil {
		t.Fatal(err)
	}
	if s.Name != "nobody" || !s.Enabled || s.Maybe != nil || s.Factor != 1.6 || s.Size != 8<<20 ||
		s.Grace != 10*time.Minute || len(s.Words) != 2 || s.Words[1] != "deadline exceeded" || s.Server.Port != 7002 {
		t.Errorf("got %+v", s)
	}
}

func TestMissingFileIsReported(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "absent.yml"): dir + "/absent.yml: open the file: no such file or directory",
		dir:                              dir + ": read the file: is a directory",
	} {
		var s sample
		err := load(Search{File: path}, Options{}, &s).Err()
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
		if s.Server.Port != 7002 {
			t.Errorf("%s: got %+v, want the defaults", path, s)
		}
	}
}

// TestSecretsAreNotPrinted prints a secret in every way in which it could reach a log.
func TestSecretsAreNotPrinted(t *testing.T) {
	var s sample
	report := Parse("s.yml", []byte("server: {password: hunter2}\nfuture: {token: hunter2}\nother: {x: hunter2}"), sampleOptions, &s)
	if s.Server.Password.Reveal() != "hunter2" {
		t.Fatalf("got %q", s.Server.Password.Reveal())
	}
	printed := fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s.Server.Password, s.Server.Password, s.Server.Password, s.Server.Password)
	printed += fmt.Sprintf("%v %+v %#v", struct{ s sample }{s}, struct{ s sample }{s}, struct{ s Secret }{s.Server.Password})
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("settings", "all", s, "password", s.Server.Password)
	printed += string(encoded) + logged.String()
	printed += fmt.Sprint(Effective(&s, report), report.Unused(nil), report.Err())
	if strings.Contains(printed, "hunter2") || strings.Contains(printed, fmt.Sprintf("%x", "hunter2")) {
		t.Errorf("the output contains the secret: %s", printed)
	}
}

func TestProblemIsWithin(t *testing.T) {
	p := &Problem{Path: "a.list[1].name"}
	for path, want := range map[string]bool{"a.list[1]": true, "a.list": true, "a": true, "a.list[1].name": true, "a.list[1].n": false, "a.list[11]": false, "b": false} {
		if p.IsWithin(path) != want {
			t.Errorf("Within(%q) = %v", path, !want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		report := Parse("fuzz.yml", data, sampleOptions, &s)
		if strings.Contains(describe(&s, report), "hunter2") && !strings.Contains(string(data), "hunter2") && !strings.Contains(string(data), "SECRET") {
			t.Error("the output contains an environment variable that no setting refers to")
		}
	})
}

func TestDurationsAreReadInEachForm(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "1h30m": 90 * time.Minute, "14d": 14 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "100ms": 100 * time.Millisecond,
		"PT5S": 5 * time.Second, "PT1H30M": 90 * time.Minute, "p2d": 48 * time.Hour, "P1W": 7 * 24 * time.Hour,
		"": -1, "P": -1, "PT": -1, "P5": -1, "p-1d": -1, "-1s": -1, "5 parsecs": -1, "ptpt5s": -1, "9999999999": -1, "99999w": -1, "P1Y": -1,
	} {
		d, err := parseDuration(text)
		if (err == nil) != (want >= 0) || err == nil && d != want {
			t.Errorf("%q: got %s, %v, want %s", text, d, err, want)
		}
	}
}
