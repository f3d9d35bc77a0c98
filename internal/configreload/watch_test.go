package configreload

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// secrets returns one result after the other, and then that nothing has changed.
type secrets struct {
	results []result
	asked   int
}

type result struct {
	references []string
	err        error
}

func (s *secrets) RefreshSecrets(context.Context) ([]string, error) {
	s.asked++
	if s.asked > len(s.results) {
		return nil, nil
	}
	return s.results[s.asked-1].references, s.results[s.asked-1].err
}

// TestRefreshSecrets checks that a change is reported, and that a failure that lasts is logged once.
func TestRefreshSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("the engine is down")
		s := &secrets{results: []result{{nil, down}, {nil, down}, {[]string{"encrypted:k8s!n:a"}, nil}, {[]string{"encrypted:k8s!n:a"}, nil}, {nil, down}}}
		var logged bytes.Buffer
		changed := make(chan struct{}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
		defer cancel()
		refreshSecrets(ctx, func() *secrets { return s }, changed, slog.New(slog.NewTextHandler(&logged, nil)))
		if s.asked != 10 || len(changed) != 1 {
			t.Errorf("asked %d times, with %d changes to report", s.asked, len(changed))
		}
		if got := strings.Count(logged.String(), "cannot fetch secrets again"); got != 2 {
			t.Errorf("got %d warnings, want one for each failure: %s", got, logged.String())
		}
	})
}

// TestFirstIrregular finds a pipe among files.
func TestFirstIrregular(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := firstIrregular([]string{file, filepath.Join(dir, "missing"), pipe}); got != pipe {
		t.Errorf("got %q", got)
	}
	if got := firstIrregular([]string{file}); got != "" {
		t.Errorf("got %q", got)
	}
}
