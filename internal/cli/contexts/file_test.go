package contexts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestInvalidFiles(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"not YAML", "contexts: [", "line 1"},
		{"not a map", "- a", "cannot unmarshal"},
		{"a misspelt key", "contexts: [{name: a, sever: x}]", `the key "sever" is unknown: did you mean server?`},
		{"a misspelt key at the top", "currentContxt: a", `the key "currentContxt" is unknown: did you mean currentContext?`},
		{"a key twice", "contexts: [{name: a, name: b, server: x}]", `key "name" already set in map`},
		{"a wrong type", "contexts: {a: b}", "cannot unmarshal object"},
		{"no name", "contexts: [{server: x}]", `the name of the context "" must have 1 to 255 bytes`},
		{"a name with a control character", `contexts: [{name: "a\x1b[2J", server: x}]`, "without spaces"},
		{"a long name", "contexts: [{name: " + strings.Repeat("a", 256) + ", server: x}]", "must have 1 to 255 bytes"},
		{"no server", "contexts: [{name: a}]", "vedette config set-context a --server URL"},
		{"no URL", "contexts: [{name: a, server: 'ftp://x'}]", `"ftp://x" is not a URL`},
		{"two of a name", "contexts: [{name: a, server: x}, {name: a, server: y}]", `two contexts with the name "a"`},
		{"two tokens", "contexts: [{name: a, server: x, tokenFile: f, tokenCommand: [c]}]", "has a tokenFile and a tokenCommand"},
		{"a key without its certificate", "contexts: [{name: a, server: x, key: f}]", "has a key, but no cert"},
		{"an inline token", "contexts: [{name: a, server: x, token: secret}]", `the key "token" is unknown: did you mean tokenCommand or tokenFile?`},
	} {
		f, err := parse("/x/config.yml", []byte(tt.text))
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "/x/config.yml") {
			t.Errorf("%s: got %+v, %v, want an error with %q", tt.name, f, err, tt.want)
		}
	}
}

// TestSavedFileIsRead checks what is saved, its mode, and that paths are those of the file's folder.
func TestSavedFileIsRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "config.yml")
	f, err := Load(path)
	if err != nil || !f.IsMissing {
		t.Fatalf("a missing file: got %+v, %v", f, err)
	}
	f.Set(Context{Name: "a", Server: "https://a", CACert: "ca.crt", TokenCommand: []string{"print", "token"}})
	f.Set(Context{Name: "b", Server: "b:7002", User: "ann"})
	f.CurrentContext = "b"
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v, %v, want 0600", info.Mode(), err)
	}
	read, err := Load(path)
	if err != nil || read.CurrentContext != "b" || len(read.Contexts) != 2 {
		t.Fatalf("got %+v, %v", read, err)
	}
	if a, err := read.Find("a"); err != nil || a.CACert != filepath.Join(dir, "new", "ca.crt") || len(a.TokenCommand) != 2 {
		t.Errorf("got %+v, %v", a, err)
	}
	if err := read.Delete("b"); err != nil || read.CurrentContext != "" || len(read.Contexts) != 1 {
		t.Errorf("after a deletion: got %+v, %v", read, err)
	}
	if _, err := read.Find("aa"); vedette.KindOf(err) != vedette.NotFound || !strings.Contains(err.Error(), "did you mean a?") {
		t.Errorf("got %v, want a suggestion", err)
	}
}

// TestSaveKeepsSymbolicLinks checks that a file that is kept elsewhere stays there.
func TestSaveKeepsSymbolicLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles.yml"), filepath.Join(dir, "config.yml")
	if err := os.WriteFile(target, []byte("contexts: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	f, err := Load(link)
	if err != nil {
		t.Fatal(err)
	}
	f.Set(Context{Name: "a", Server: "a"})
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(target); err != nil || !strings.Contains(string(content), "name: a") {
		t.Errorf("got %q, %v in the target of the link", content, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v, want no temporary files", entries, err)
	}
}

// TestCommandsInWritableFileAreRejected checks that other users cannot make this user run a
// command.
func TestCommandsInWritableFileAreRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("contexts: [{name: a, server: 'https://a', tokenCommand: [x]}]")
	if _, err := Load(path); vedette.KindOf(err) != vedette.Denied || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v, want a refusal", err)
	}
	write("contexts: [{name: a, server: 'https://a'}]")
	if _, err := Load(path); err != nil {
		t.Errorf("without commands: got %v", err)
	}
}

func TestLargeFileIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(path, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "larger than 1024 KiB") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("currentContext: a\ncontexts: [{name: a, server: 'https://a', tokenCommand: [x]}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parse("/x/config.yml", data)
		if err != nil {
			return
		}
		for _, c := range file.Contexts {
			if err := c.Validate(); err != nil {
				t.Errorf("%q: got the context %+v, which is not valid: %v", data, c, err)
			}
		}
	})
}
