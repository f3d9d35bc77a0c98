package agentserver

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnreadLogIsClosed holds that a log is closed when its reader takes nothing for
// a minute, that both sides hear why, and that a slow reader and a silent log go on.
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
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			if _, err := io.ReadAll(out); !errors.Is(err, errLogReadTimeout) {
				t.Errorf("the reader hears %v", err)
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
				t.Errorf("%d lines were read of 100", lines)
			}
		})
	})
}
