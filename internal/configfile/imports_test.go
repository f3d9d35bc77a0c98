package configfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportsAreBounded checks that imports cannot take much time or memory.
func TestImportsAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		build  func(files map[string]string)
		want   string
		noName bool // the last file is not reached
	}{
		{"a chain of 10", func(files map[string]string) { chain(files, 10, 1) }, "", false},
		{"a chain of 11", func(files map[string]string) { chain(files, 11, 1) }, "the chain of imports has more than 10 files: ", true},
		{"each file imports the next twice", func(files map[string]string) { chain(files, 10, 2) }, "files are imported more than 1000 times", false},
		{"many files", func(files map[string]string) {
			var list strings.Builder
			for i := range 150 {
				fmt.Fprintf(&list, "  - f%d\n", i)
				files[fmt.Sprintf("f%d", i)] = "name: last"
			}
			files["a.yml"] = "spring.config.import:\n" + list.String()
		}, "more than 100 files are imported", false},
		{"the same file many times", func(files map[string]string) {
			files["a.yml"] = "spring.config.import: [" + strings.Repeat("b,", 5000) + "]"
			files["b"] = "name: last"
		}, "files are imported more than 1000 times", false},
		{"values of many files together", func(files map[string]string) {
			files["a.yml"] = "name: last\nspring.config.import: [b, c, d, e]"
			for _, name := range []string{"b", "c", "d", "e"} {
				files[name] = "other: [" + strings.Repeat("x,", 60_000) + "]"
			}
		}, "the configuration has more than 200000 values", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{}
			tt.build(files)
			dir := writeFiles(t, files)
			var s sample
			err := load(Search{File: filepath.Join(dir, "a.yml")}, Options{}, &s).Err()
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || len(err.Error()) > 10_000) {
				t.Errorf("got %.1000v, want %q", err, tt.want)
			}
			if (s.Name != "last") != tt.noName {
				t.Errorf("got name %q", s.Name)
			}
		})
	}
}

// chain makes files that import each the next, the last one with a name.
func chain(files map[string]string, length, times int) {
	for i := range length {
		next := fmt.Sprintf("f%d", i+1)
		files[fmt.Sprintf("f%d", i)] = "spring.config.import: [" + strings.Repeat(next+",", times) + "]"
	}
	files["a.yml"] = files["f0"]
	files[fmt.Sprintf("f%d", length)] = "name: last"
}

func TestParseImportsNothing(t *testing.T) {
	var s sample
	err := Parse("a.yml", []byte("spring.config.import: /etc/passwd"), Options{}, &s).Err()
	const want = `a.yml:1:23: "spring.config.import": the file /etc/passwd does not exist: create it, or write "optional:/etc/passwd" if it may be missing`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestImportsMustBePaths checks values that are not paths of files.
func TestImportsMustBePaths(t *testing.T) {
	for value, want := range map[string]string{
		"{a: b}":              `"spring.config.import" must be a path or a list of paths, got`,
		"[[a]]":               `"spring.config.import" must be a path or a list of paths, got`,
		"[{a: b}]":            `"spring.config.import" must be a path or a list of paths, got`,
		"configserver:http:a": `"spring.config.import": only files can be imported`,
		"absent.yml":          `the file absent.yml does not exist`,
		"' '":                 `"spring.config.import" must be the path of a file`,
		"":                    "",
	} {
		var s sample
		err := Parse("s.yml", []byte("spring.config.import: "+value), Options{}, &s).Err()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}
