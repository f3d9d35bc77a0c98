package tempdir_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/vedette-io/vedette/internal/tempdir"
)

const pattern = "vedette-test-*"

// TestMain is the process that is killed: it makes a directory, prints its path, and waits for its input, which never ends. Without
// anything that can end its wait, it would end at once, as a deadlock.
func TestMain(m *testing.M) {
	if parent := os.Getenv("TEMPDIR_PARENT"); parent != "" {
		dir, err := tempdir.Make(parent, pattern)
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(dir.Path + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(dir) // its lock
	}
	os.Exit(m.Run())
}

// TestOnlyAbandonedDirectoriesAreRemoved kills a process, and checks that only what it left is removed.
func TestOnlyAbandonedDirectoriesAreRemoved(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEMPDIR_PARENT="+parent)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	abandoned := string(line[:n-1])
	write(t, abandoned, "git/objects/pack")
	own, err := tempdir.Make(parent, pattern)
	if err != nil {
		t.Fatal(err)
	}
	write(t, own.Path, "pack")
	for _, dir := range []string{filepath.Join(parent, "vedette-test-new"), filepath.Join(parent, "other"), elsewhere} {
		write(t, dir, "file")
	}
	write(t, filepath.Join(parent, "other"), ".lock")
	write(t, elsewhere, ".lock")
	if err := os.Symlink(elsewhere, filepath.Join(parent, "vedette-test-link")); err != nil {
		t.Fatal(err)
	}
	if removed := tempdir.RemoveAbandoned(parent, pattern); removed != 0 {
		t.Errorf("while both processes live: %d directories were removed", removed)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if removed := tempdir.RemoveAbandoned(parent, pattern); removed != 1 {
		t.Errorf("%d directories were removed, want 1", removed)
	}
	var left []string
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{"other", "vedette-test-link", "vedette-test-new", filepath.Base(own.Path)}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("got %q, want %q", left, want)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "file")); err != nil {
		t.Errorf("a directory that a link leads to was removed: %v", err)
	}
	if err := own.Remove(); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}
