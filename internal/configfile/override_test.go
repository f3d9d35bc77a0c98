package configfile

import (
	"path/filepath"
	"strings"
	"testing"
)

// loadPair loads a base file and its overlay.
func loadPair(t testing.TB, base, overlay string) (*sample, *Report) {
	t.Helper()
	contents := map[string]string{"a.yml": base, "a-local.yml": overlay}
	var s sample
	l := newLoader(sampleOptions, &sample{}, func(path string) ([]byte, error) {
		if content, exists := contents[path]; exists {
			return []byte(content), nil
		}
		return nil, errNotFound
	})
	l.search(Search{File: "a.yml"})
	return &s, l.content().Decode(&s, nil)
}

// settingsOf returns the settings that come from files.
func settingsOf(s *sample, r *Report) map[string]KeyValue {
	settings := map[string]KeyValue{}
	for _, kv := range Effective(s, r) {
		if strings.HasPrefix(kv.From, "a.yml:") || strings.HasPrefix(kv.From, "a-local.yml:") {
			settings[kv.Key] = kv
		}
	}
	return settings
}

// FuzzOverride checks two rules of overlays: an overlay with the same content changes nothing, and
// everything that an overlay sets alone it also sets over another file, with its own position.
func FuzzOverride(f *testing.F) {
	f.Add("name: x", "name: y")
	f.Add("server: {port: 1, tls.enabled: true}\nlabels: {a: b}", "server.port: 2\nlabels.c: d\nServer: {key: x}")
	f.Add("entries: [{name: x}]\nother: {a: {b: c}}", "entries: []\nother.a.b: d\nlevel: {x: y}")
	f.Add("server: 7\nnumbers: 1,2", "server: {password: x}\nnumbers: [3]\nfuture: {}")
	f.Add("maybe: true\n---\nspring.profiles: local\nname: z", "maybe: no\nold.server.port: 9\nold.graceMs: 5")
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := readFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("name: x\nserver: {port: 1}", string(data))
	}
	f.Fuzz(func(t *testing.T, base, overlay string) {
		alone, aloneReport := loadPair(t, overlay, "")
		if aloneReport.Err() != nil || strings.Contains(overlay, "${") || strings.Contains(overlay, "import") || strings.Contains(base, "import") {
			loadPair(t, base, overlay) // must not panic
			return
		}
		twice, twiceReport := loadPair(t, overlay, overlay)
		merged, mergedReport := loadPair(t, base, overlay)
		twiceSettings, mergedSettings := settingsOf(twice, twiceReport), settingsOf(merged, mergedReport)
		for key, want := range settingsOf(alone, aloneReport) {
			if got := twiceSettings[key]; got.Value != want.Value {
				t.Errorf("the same twice: %s is %q, want %q", key, got.Value, want.Value)
			}
			from := strings.Replace(want.From, "a.yml:", "a-local.yml:", 1)
			if got := mergedSettings[key]; !tooLarge(mergedReport) && (got.Value != want.Value || got.From != from) {
				t.Errorf("over another file: %s is %q from %s, want %q from %s", key, got.Value, got.From, want.Value, from)
			}
		}
	})
}

// tooLarge reports whether a limit on all files together left something out.
func tooLarge(r *Report) bool {
	return r.Err() != nil && strings.Contains(r.Err().Error(), "more than")
}

// TestHalfWrittenFiles checks each beginning of a file: a file that ends within a line is a problem,
// or its settings are those up to there. No beginning makes up settings.
func TestHalfWrittenFiles(t *testing.T) {
	const overlay = "name: \"overlay\"\nserver:\n  port: 7\n  tls: {enabled: true}\nentries:\n  - {name: \"one\", tryTimes: 1}\n  - name: \"two\"\n"
	for i := range len(overlay) {
		s, r := loadPair(t, "name: base", overlay[:i])
		if r.Err() != nil {
			continue
		}
		if s.Name != "base" && s.Name != "overlay" || s.Server.Port != 7002 && s.Server.Port != 7 || len(s.Entries) > 2 {
			t.Errorf("after %d bytes: got %+v", i, s)
		}
	}
}

// TestLargeFilesAreReadOrRejected checks that 5 MB of YAML are read, or rejected with a problem, whatever is in them.
func TestLargeFilesAreReadOrRejected(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	for _, tt := range []struct{ name, file, problem string }{
		{"one long value", "name: " + long, ""},
		{"comments", "# " + long + "\nname: x", ""},
		{"entries", "entries:\n" + strings.Repeat("  - {name: account, tryTimes: 3}\n", 5<<20/33), "more than 200000 values"},
		{"many unknown keys", "name: x\n" + strings.Repeat("k: 1\n", 100_000), "unknown key \"k\""},
		{"the same key again and again", strings.Repeat("? \n", 310_000), "more than 200000 values"},
		{"deep nesting", "name: " + strings.Repeat("[", 500_000), "this is not valid YAML"},
		{"a flood of anchors", "name: x\nother: [" + strings.Repeat("&a x,", 1<<20) + "]", "more than 200000 values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s sample
			err := Parse("a.yml", []byte(tt.file), Options{}, &s).Err()
			switch {
			case (err != nil) != (tt.problem != ""), err != nil && !strings.Contains(err.Error(), tt.problem):
				t.Errorf("got %.300v, want %q", err, tt.problem)
			case err != nil && len(err.Error()) > 20_000:
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
