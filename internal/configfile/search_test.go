package configfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vedette-io/vedette/internal/golden"
)

// writeFiles writes files below a new directory, and returns it. A content of "-> target" makes a
// symbolic link, and "directory" a directory.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		target, isLink := strings.CutPrefix(content, "-> ")
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(target, path)
		case content == "directory":
			err = os.Mkdir(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// envOf returns an environment with the given names and values.
func envOf(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestFirstPlaceWithAFileCounts(t *testing.T) {
	for _, tt := range []struct {
		name          string
		files         map[string]string
		value, unused string // of the key name; files with a notice
	}{
		{"nothing", nil, "nobody", ""},
		{"yml", map[string]string{"one/a.yml": "name: x"}, "x", ""},
		{"yaml is preferred", map[string]string{"one/a.yml": "name: x", "one/a.yaml": "name: y"}, "y", "one/a.yml"},
		{"an empty yaml gives way", map[string]string{"one/a.yml": "name: x", "one/a.yaml": ""}, "x", ""},
		{"so does a yaml with comments only", map[string]string{"one/a.yml": "name: x", "one/a.yaml": "---\n# later\n\n"}, "x", ""},
		{"the first name comes first", map[string]string{"one/a.yml": "name: x", "one/b.yml": "name: y"}, "x", "one/b.yml"},
		{"the first directory comes first", map[string]string{"two/a.yml": "name: x", "one/b.yml": "name: y"}, "y", "two/a.yml"},
		{"an empty file is no file", map[string]string{"one/a.yml": "", "two/a.yml": "name: x"}, "x", ""},
		{"an overlay is enough", map[string]string{"one/a-local.yml": "name: x", "two/a.yml": "name: y"}, "x", "two/a.yml"},
		{"local overrides armory", map[string]string{"one/a-local.yml": "name: x", "one/a-armory.yml": "name: y", "one/a.yml": "name: z"}, "x", ""},
		{"an overlay overrides the base in the other notation", map[string]string{"one/a-armory.yaml": "name: x", "one/a.yml": "name: z"}, "x", ""},
		{"overlays of other profiles are not read", map[string]string{"one/a-prod.yml": "name: x", "one/a.yml": "name: z"}, "z", ""},
		{"overlays of other names are not read", map[string]string{"one/b-local.yml": "name: x", "one/a.yml": "name: z"}, "z", "one/b-local.yml"},
		{"a link", map[string]string{"one/a.yml": "-> ../data/a.yml", "data/a.yml": "name: x"}, "x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeFiles(t, tt.files)
			one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
			var s sample
			r := load(Search{Places: []Place{{one, "a"}, {one, "b"}, {two, "a"}}}, Options{}, &s)
			if r.Err() != nil || s.Name != tt.value {
				t.Errorf("got %q, want %q; %v", s.Name, tt.value, r.Err())
			}
			if hasNotice := len(r.Notices) > 0; hasNotice != (tt.unused != "") || hasNotice && !strings.HasPrefix(r.Notices[0], filepath.Join(dir, tt.unused)+" is not read") {
				t.Errorf("got notices %q, want one about %q", r.Notices, tt.unused)
			}
		})
	}
}

// TestReportNamesEveryRelevantFile checks that a report names every file whose appearance would change the
// settings, because a reload watches them.
func TestReportNamesEveryRelevantFile(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yml": "spring.config.import: [accounts.yml, 'optional:later.yml']", "accounts.yml": "name: x", "a-local.yml": "# nothing yet", "b.yml": "name: y",
	})
	var s sample
	r := load(Search{Places: []Place{{dir, "a"}, {dir, "b"}}}, Options{Env: envOf("PROFILES_ACTIVE", "local")}, &s)
	want := map[string]FileState{"a.yaml": FileMissing, "a.yml": FileRead, "accounts.yml": FileRead, "later.yml": FileMissing,
		"a-local.yaml": FileMissing, "a-local.yml": FileEmpty, "b.yaml": FileMissing, "b.yml": FileUnused, "b-local.yaml": FileMissing,
		"b-local.yml": FileMissing}
	for _, f := range r.Files {
		name := strings.TrimPrefix(f.Path, dir+"/")
		if state, expected := want[name]; !expected || state != f.State {
			t.Errorf("got %s in state %d, want %d (expected: %v)", name, f.State, state, expected)
		}
		delete(want, name)
	}
	if len(want) > 0 || r.Err() != nil || r.Base != filepath.Join(dir, "a.yml") {
		t.Errorf("these files are missing in the report: %v; base %s; %v", want, r.Base, r.Err())
	}
}

func TestProfilesComeFromTheFirstVariable(t *testing.T) {
	for _, tt := range []struct {
		name    string
		env     []string
		want    string
		problem string
	}{
		{"the default", nil, "armory local", ""},
		{"an empty variable is not set", []string{"SPRING_PROFILES_ACTIVE", " "}, "armory local", ""},
		{"Spring's", []string{"SPRING_PROFILES_ACTIVE", "prod, eu"}, "prod eu", ""},
		{"the predecessor's", []string{"PROFILES_ACTIVE", "prod"}, "prod", ""},
		{"ours comes first", []string{"PROFILES_ACTIVE", "a", "SPRING_PROFILES_ACTIVE", "b", "VEDETTE_PROFILES_ACTIVE", "c"}, "c", ""},
		{"Spring's comes before the predecessor's", []string{"PROFILES_ACTIVE", "a", "SPRING_PROFILES_ACTIVE", "b"}, "b", ""},
		{"each once", []string{"PROFILES_ACTIVE", "a,,b,a"}, "a b", ""},
		{"other directories", []string{"PROFILES_ACTIVE", "../../etc/passwd,a"}, "a", `environment variable PROFILES_ACTIVE: the name of a profile must consist of up to 100 letters, digits, dots, dashes and underscores, got "../../etc/passwd"`},
		{"unicode", []string{"PROFILES_ACTIVE", "prod ü"}, "", "the name of a profile must"},
		{"300 characters", []string{"PROFILES_ACTIVE", strings.Repeat("a", 300)}, "", "the name of a profile must"},
		{"too many", []string{"PROFILES_ACTIVE", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v"}, "a b c d e f g h i j k l m n o p q r s t", "at most 20 profiles"},
	} {
		r := &Report{}
		got := strings.Join(activeProfiles(Options{Env: envOf(tt.env...)}, r), " ")
		if got != tt.want || (r.Err() != nil) != (tt.problem != "") || r.Err() != nil && !strings.Contains(r.Err().Error(), tt.problem) {
			t.Errorf("%s: got %q, %v; want %q, %q", tt.name, got, r.Err(), tt.want, tt.problem)
		}
	}
}

// TestDirectoriesLoadAsRecorded loads testdata/folders/*/config.yml, with overlays and imports, and compares problems,
// settings and files with result.txt beside it.
func TestDirectoriesLoadAsRecorded(t *testing.T) {
	directories, err := filepath.Glob("testdata/folders/*")
	if err != nil || len(directories) == 0 {
		t.Fatal("no test directories", err)
	}
	for _, directory := range directories {
		t.Run(filepath.Base(directory), func(t *testing.T) {
			var s sample
			report := load(Search{File: directory + "/config.yml"}, sampleOptions, &s)
			var out strings.Builder
			out.WriteString(describe(&s, report))
			for _, f := range report.Files {
				if f.State != FileMissing {
					fmt.Fprintf(&out, "file %s\n", strings.TrimPrefix(f.Path, directory+"/"))
				}
			}
			golden.Compare(t, directory+"/result.txt", out.String())
		})
	}
}

func TestUnreadableFilesAreProblems(t *testing.T) {
	pipe := func(dir string) { _ = syscall.Mkfifo(filepath.Join(dir, "a-local.yml"), 0o600) }
	for _, tt := range []struct {
		name    string
		files   map[string]string
		prepare func(dir string)
		want    string
	}{
		{"a directory in place of an overlay", map[string]string{"a.yml": "name: x", "a-local.yml": "directory"}, nil, "/a-local.yml: read the file: is a directory"},
		{"a link to nowhere", map[string]string{"a.yml": "name: x", "a-local.yml": "-> gone"}, nil, "/a-local.yml: open the file: it is a symbolic link to a file that does not exist"},
		{"a link to itself", map[string]string{"a.yml": "name: x", "a-local.yml": "-> a-local.yml"}, nil, "/a-local.yml: open the file: too many levels of symbolic links"},
		{"a pipe that nobody writes to", map[string]string{"a.yml": "name: x"}, pipe, "/a-local.yml: open the file: it is not a regular file"},
		{"an import of a device", map[string]string{"a.yml": "name: x\nspring.config.import: /dev/zero"}, nil, `a.yml:2:23: "spring.config.import": /dev/zero: open the file: it is not a regular file`},
		{"an import of a directory", map[string]string{"a.yml": "name: x\nspring.config.import: sub", "sub": "directory"}, nil, "read the file: is a directory"},
		{"an unreadable import that is optional", map[string]string{"a.yml": "name: x\nspring.config.import: 'optional:sub'", "sub": "directory"}, nil, "read the file: is a directory"},
		{"8 MiB", map[string]string{"a.yml": "name: x", "a-local.yml": "words: " + strings.Repeat("x", 8<<20)}, nil, "/a-local.yml: read the file: it is larger than 8 MiB"},
		{"more than 16 MiB together", map[string]string{"a.yml": "name: x\nspring.config.import: [b, c, d]",
			"b": "#" + strings.Repeat("x", 7<<20), "c": "#" + strings.Repeat("x", 7<<20), "d": "#" + strings.Repeat("x", 7<<20)}, nil,
			"read the file: the files of the configuration are larger than 16 MiB together"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeFiles(t, tt.files)
			if tt.prepare != nil {
				tt.prepare(dir)
			}
			var s sample
			r := load(Search{Places: []Place{{dir, "a"}}}, Options{}, &s)
			if err := r.Err(); err == nil || !strings.HasSuffix(err.Error(), tt.want) || s.Name != "x" {
				t.Errorf("got name %q, %v; want x, %s", s.Name, err, tt.want)
			}
		})
	}
}

// TestFileBelowAFile checks that HOME may be something like /dev/null.
func TestFileBelowAFile(t *testing.T) {
	dir := writeFiles(t, map[string]string{"home": "a file"})
	var s sample
	if r := load(Search{Places: []Place{{filepath.Join(dir, "home/.config"), "a"}}}, Options{}, &s); r.Err() != nil || r.Base != "" {
		t.Errorf("got %q, %v; want no file and no problem", r.Base, r.Err())
	}
}

// TestUnusualFileNamesAreRead checks names that nobody expects.
func TestUnusualFileNamesAreRead(t *testing.T) {
	for _, name := range []string{"with space", "ünï-çødé", "a.b.c", "-", strings.Repeat("n", 240)} {
		dir := writeFiles(t, map[string]string{name + ".yml": "name: x", name + "-local.yml": "name: y\nlevel: [z]"})
		var s sample
		r := load(Search{File: filepath.Join(dir, name+".yml")}, Options{}, &s)
		want := name + `-local.yml:2:8: "level" must be a single value, got a list`
		if s.Name != "y" || r.Err() == nil || r.Err().Error() != want {
			t.Errorf("%q: got %q, %v; want y, %s", name, s.Name, r.Err(), want)
		}
	}
	var s sample
	if err := load(Search{File: filepath.Join(t.TempDir(), strings.Repeat("n", 300))}, Options{}, &s).Err(); err == nil ||
		!strings.HasSuffix(err.Error(), "open the file: file name too long") {
		t.Errorf("300 characters: got %v", err)
	}
}

// TestPositionsTellSameNamesApart checks that positions tell files of the same name apart.
func TestPositionsTellSameNamesApart(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.yml": "{name: [x], spring.config.import: sub/a.yml}", "sub/a.yml": "level: [x]"})
	var s sample
	err := load(Search{File: filepath.Join(dir, "a.yml")}, Options{}, &s).Err()
	if err == nil || !strings.Contains(err.Error(), "\na.yml:1:8:") && !strings.HasPrefix(err.Error(), "a.yml:1:8:") ||
		!strings.Contains(err.Error(), dir+"/sub/a.yml:1:8:") {
		t.Errorf("got %v", err)
	}
}

func TestProblemsOfAllFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.yml": "server.prot: 1", "a-local.yml": "server: {port: x"})
	var s sample
	var got []string
	for _, p := range load(Search{Places: []Place{{dir, "a"}}}, Options{}, &s).Problems {
		got = append(got, p.Error())
	}
	slices.Sort(got)
	if len(got) != 2 || !strings.HasPrefix(got[0], "a-local.yml:1: this is not valid YAML") || !strings.HasPrefix(got[1], `a.yml:1:1: unknown key "server.prot"`) {
		t.Errorf("got %q", got)
	}
}

// load reads files without references to secrets.
func load(s Search, o Options, into any) *Report { return Read(s, o, into).Decode(into, nil) }
