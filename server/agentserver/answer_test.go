package agentserver

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnreadLogIsClosed checks that a log is closed if its reader reads nothing for a
// minute, that both sides receive the reason, and that a slow reader and a silent log
// are not affected.
func TestUnreadLogIsClosed(t *testing.T) {
	t.Run("the reader stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, in := io.Pipe()
			start, log := time.Now(), strings.NewReader(strings.Repeat("x", 1<<20))
			done := make(chan error, 1)
			go func() { _, err := io.Copy(timeoutWriter{in}, log); done <- err }()
			if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, errLogReadTimeout) || time.Since(start) != logReadTimeout {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
			if _, err := io.ReadAll(out); !errors.Is(err, errLogReadTimeout) {
				t.Errorf("the reader: got %v", err)
			}
		})
	})
	t.Run("the reader is slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, in := io.Pipe()
			go func() {
				for range 100 {
					_, _ = timeoutWriter{in}.Write([]byte("line\n"))
					time.Sleep(time.Hour) // and the log silent
				}
				_ = in.Close()
			}()
			lines := 0
			for buf := make([]byte, 5); ; lines++ {
				time.Sleep(logReadTimeout - time.Second)
				if _, err := io.ReadFull(out, buf); err != nil {
					break
				}
			}
			if lines != 100 {
				t.Errorf("got %d lines, want 100", lines)
			}
		})
	})
}
