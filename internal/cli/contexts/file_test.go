package contexts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestInvalidFilesAreExplained(t *testing.T) {
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

// TestSavedFileIsRead checks what is saved, its mode, and that paths are those of the file's directory.
func TestSavedFileIsRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "config.yml")
	err := Update(path, func(f *File) error {
		if !f.IsMissing {
			t.Errorf("a missing file: got %+v", f)
		}
		f.Set(Context{Name: "a", Server: "https://a", CACert: "ca.crt", TokenCommand: []string{"print", "token"}})
		f.Set(Context{Name: "b", Server: "b:7002", User: "ann"})
		f.CurrentContext = "b"
		return nil
	})
	if err != nil {
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

// TestUpdateKeepsSymbolicLinks checks that a file that is kept elsewhere stays there, whether it exists
// already or not.
func TestUpdateKeepsSymbolicLinks(t *testing.T) {
	for _, exists := range []bool{true, false} {
		dir := t.TempDir()
		target, link := filepath.Join(dir, "dotfiles", "vedette.yml"), filepath.Join(dir, "config.yml")
		if exists {
			if err := errors.Join(os.Mkdir(filepath.Dir(target), 0o700), os.WriteFile(target, []byte("contexts: []\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Symlink(filepath.Join("dotfiles", "vedette.yml"), filepath.Join(dir, "middle")), os.Symlink("middle", link)); err != nil {
			t.Fatal(err)
		}
		if err := Update(link, addContext("a")); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(target); err != nil || !strings.Contains(string(content), "name: a") {
			t.Errorf("exists %v: got %q, %v in the target of the link", exists, content, err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("exists %v: got %v, %v, want a link", exists, info, err)
		}
		wantFiles(t, dir, "config.yml", "dotfiles", "middle")
		wantFiles(t, filepath.Dir(target), ".vedette.yml.lock", "vedette.yml")
	}
}

func addContext(name string) func(*File) error {
	return func(f *File) error {
		f.Set(Context{Name: name, Server: name})
		return nil
	}
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v in %s, want %q", names, err, dir, want)
	}
}

// TestConcurrentUpdatesLoseNothing checks that no change is lost if many processes change a file at once, and that
// readers never see a part. The processes are this test.
func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	const processes = 20
	if name := os.Getenv("VEDETTE_TEST_CONTEXT"); name != "" {
		if err := Update(os.Getenv(PathVariable), addContext(name)); err != nil {
			t.Fatal(err)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "config.yml")
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestConcurrentUpdatesLoseNothing$")
			cmd.Env = append(os.Environ(), PathVariable+"="+path, fmt.Sprintf("VEDETTE_TEST_CONTEXT=c%d", i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
			if _, err := Load(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f, err := Load(path)
	if err != nil || len(f.Contexts) != processes {
		t.Errorf("got %d contexts, %v, want %d", len(f.Contexts), err, processes)
	}
}

// TestUpdateAfterCrash checks that what a killed command left does not prevent a change.
func TestUpdateAfterCrash(t *testing.T) {
	dir := t.TempDir()
	for _, left := range []string{".config.yml.lock", ".config.yml.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, left), []byte("contexts: [{na"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "config.yml")
	if err := Update(path, addContext("a")); err != nil {
		t.Fatal(err)
	}
	if f, err := Load(path); err != nil || len(f.Contexts) != 1 {
		t.Errorf("got %+v, %v", f, err)
	}
	wantFiles(t, dir, ".config.yml.lock", "config.yml")
}

// TestFailedUpdateLeavesTheFile checks what users read if the file cannot be changed, and that it stays as it is.
func TestFailedUpdateLeavesTheFile(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		name    string
		prepare func(dir string) (path string, err error)
		change  func(*File) error
		want    string
	}{
		{"the change fails", func(dir string) (string, error) { return filepath.Join(dir, "c.yml"), nil }, func(*File) error { return refused }, "refused"},
		{"the directory is a file", func(dir string) (string, error) {
			return filepath.Join(dir, "f", "c.yml"), os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)
		}, addContext("a"), "write the contexts to"},
		{"a link to itself", func(dir string) (string, error) {
			return filepath.Join(dir, "c.yml"), os.Symlink("c.yml", filepath.Join(dir, "c.yml"))
		}, addContext("a"), "symbolic link to itself"},
		{"the directory is read-only", func(dir string) (string, error) {
			if os.Geteuid() == 0 {
				return "/proc/self/c.yml", nil // root may write to all other directories
			}
			return filepath.Join(dir, "c.yml"), os.Chmod(dir, 0o500)
		}, addContext("a"), "c.yml"},
	} {
		path, err := tt.prepare(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = Update(path, tt.change)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
		}
		if _, err := os.ReadFile(path); err == nil {
			t.Errorf("%s: the file was written", tt.name)
		}
	}
	err := writeError("/ro/config.yml", fs.ErrPermission)
	if want := "make its directory writable, or set VEDETTE_CONFIG"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
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
