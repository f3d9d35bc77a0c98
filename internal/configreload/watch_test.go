package configreload

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
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

// TestLastingFailureIsLoggedOnce checks that a change is reported, and that a failure that lasts is logged once.
func TestLastingFailureIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("the engine is down")
		s := &secrets{results: []result{{nil, down}, {nil, down}, {[]string{"encrypted:k8s!n:a"}, nil}, {[]string{"encrypted:k8s!n:a"}, nil}, {nil, down}}}
		var logged bytes.Buffer
		changed := make(chan struct{}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
		defer cancel()
		refreshSecrets(ctx, func() *secrets { return s }, changed, slog.New(slog.NewTextHandler(&logged, nil)))
		if s.asked < 8 || s.asked > 13 || len(changed) != 1 { // in 10 minutes, every 45 to 75 seconds
			t.Errorf("asked %d times, with %d changes to report", s.asked, len(changed))
		}
		if got := strings.Count(logged.String(), "cannot fetch secrets again"); got != 2 {
			t.Errorf("got %d warnings, want one for each failure: %s", got, logged.String())
		}
	})
}

// times notes when it was asked.
type times struct{ asked []time.Duration }

func (s *times) RefreshSecrets(context.Context) ([]string, error) {
	s.asked = append(s.asked, time.Since(bubbleStart))
	return nil, nil
}

// bubbleStart is when the time of a bubble begins.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// TestRefreshesSpread checks that programs which are started in the same moment ask at different times, also
// later, and each in about a minute.
func TestRefreshesSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		agents := make([]times, 200)
		var running sync.WaitGroup
		for i := range agents {
			running.Go(func() {
				refreshSecrets(ctx, func() *times { return &agents[i] }, nil, slog.New(slog.DiscardHandler))
			})
		}
		running.Wait()
		seconds, last := map[time.Duration]int{}, 0
		for _, a := range agents {
			if a.asked[0] < 45*time.Second || a.asked[0] > 75*time.Second || len(a.asked) < 50 || len(a.asked) > 75 {
				t.Errorf("asked first after %s, and %d times in an hour", a.asked[0], len(a.asked))
			}
			seconds[a.asked[0].Truncate(time.Second)]++
			if a.asked[40].Truncate(time.Minute) == 40*time.Minute {
				last++
			}
		}
		for second, count := range seconds {
			if count > 40 { // of 200 in 30 seconds
				t.Errorf("%d programs ask after %s", count, second)
			}
		}
		if last == len(agents) {
			t.Error("all ask in the same minute after an hour")
		}
	})
}

func TestPipeIsFoundAmongFiles(t *testing.T) {
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

// piped is a configuration that was read from a pipe.
type piped struct {
	numbered
	path     string
	isClosed bool
}

func (p *piped) ReadFiles() []string                      { return []string{p.path} }
func (p *piped) NeedRestart(*piped) []string              { return nil }
func (p *piped) Next() (*piped, []configfile.File, error) { return p, nil, nil }
func (p *piped) Close() error                             { p.isClosed = true; return nil }

// TestPipedConfigurationIsClosed checks that the files with secrets of a configuration that cannot be read again stay until the program
// ends, and no longer.
func TestPipedConfigurationIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := &piped{path: path}
		done := make(chan error, 1)
		go func() {
			done <- New(cfg, Options[*piped]{Metrics: noMetrics{}, Log: slog.New(slog.DiscardHandler)}).Watch(ctx)
		}()
		synctest.Wait()
		if cfg.isClosed || len(done) > 0 {
			t.Errorf("closed %t, ended %t while the program runs", cfg.isClosed, len(done) > 0)
		}
		cancel()
		if err := <-done; err != nil || !cfg.isClosed {
			t.Errorf("closed %t, error %v after the program", cfg.isClosed, err)
		}
	})
}
