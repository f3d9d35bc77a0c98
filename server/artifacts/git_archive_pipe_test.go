package artifacts

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func endlessArchive(w io.Writer) error {
	for {
		if _, err := w.Write(make([]byte, 1024)); err != nil {
			return err
		}
	}
}

// TestArchiveEndsWithItsContext checks that neither a slow reader nor a slow archiver outlives the
// time limit.
func TestArchiveEndsWithItsContext(t *testing.T) {
	errLimit := errors.New("limit")
	ctx, cancel := context.WithCancelCause(t.Context())
	archive := startArchive(ctx, endlessArchive)
	if _, err := io.ReadFull(archive, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	cancel(errLimit)
	if _, err := io.Copy(io.Discard, archive); !errors.Is(err, errLimit) {
		t.Errorf("got %v, want the cause of the context", err)
	}
	archive.Close()
}

func TestArchiveEndsWhenClosed(t *testing.T) {
	archive := startArchive(t.Context(), endlessArchive)
	if err := archive.Close(); err != nil { // it waits for the archiver
		t.Error(err)
	}
}

// TestPanicOfArchiver checks that objects which the library cannot read do not end the server.
func TestPanicOfArchiver(t *testing.T) {
	archive := startArchive(t.Context(), func(io.Writer) error { panic("index out of range") })
	defer archive.Close()
	if _, err := io.ReadAll(archive); err == nil || !strings.Contains(err.Error(), "the repository cannot be read: index out of range") {
		t.Errorf("got %v, want the panic as an error", err)
	}
}

func TestEntryNamesStayInTheirDirectory(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "..a": true, ".gitignore": true, "a b": true, `a\b`: true,
		"": false, ".": false, "..": false, "a/b": false, ".git": false, ".Git": false} {
		if got := isEntryName(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}
