package contexts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTokensComeFromFileOrCommand checks where tokens come from, and that errors do not quote them.
func TestTokensComeFromFileOrCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name    string
		context Context
		want    string
		err     string
	}{
		{"none", Context{}, "", ""},
		{"a command", Context{TokenCommand: []string{"printf", "abc\n"}}, "abc", ""},
		{"a command that is missing", Context{TokenCommand: []string{"/no/such/program"}}, "", "get a token from /no/such/program"},
		{"a command that fails", Context{TokenCommand: []string{"sh", "-c", "echo secret; exit 3"}}, "", "get a token from sh: exit status 3"},
		{"a command without output", Context{TokenCommand: []string{"true"}}, "", "the command true has no token"},
		{"a command with endless output", Context{TokenCommand: []string{"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' s"}}, "", "longer than 16384 bytes"},
		{"two lines", Context{TokenCommand: []string{"printf", "secret\nsecret"}}, "", "characters that no token has"},
		{"a file", Context{TokenFile: file(" abc\n")}, "abc", ""},
		{"a missing file", Context{TokenFile: filepath.Join(dir, "none")}, "", "no such file"},
	} {
		source, err := tt.context.tokenSource()
		if err != nil {
			t.Fatal(err)
		}
		if source == nil {
			if tt.want+tt.err != "" {
				t.Errorf("%s: got no source", tt.name)
			}
			continue
		}
		got, err := source(t.Context())
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %q, %v, want %q, error %q", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// TestTokenFileIsReadAgain checks that a new token is used at once, and that a command runs once
// for several requests.
func TestTokenFileIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	path, runs := filepath.Join(dir, "token"), filepath.Join(dir, "runs")
	fromFile, err := Context{TokenFile: path}.tokenSource()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := fromFile(t.Context()); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	fromCommand, err := Context{TokenCommand: []string{"sh", "-c", "echo run >> " + runs + "; echo abc"}}.tokenSource()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := fromCommand(t.Context()); got != "abc" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if content, err := os.ReadFile(runs); err != nil || string(content) != "run\n" {
		t.Errorf("got the runs %q, %v, want one", content, err)
	}
}
