package gate

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestALogThatNobodyReads holds that a log is closed when its reader takes nothing for
// a minute, that both sides hear why, and that a slow reader and a silent log go on.
func TestALogThatNobodyReads(t *testing.T) {
	t.Run("the reader stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, in := io.Pipe()
			began, log := time.Now(), strings.NewReader(strings.Repeat("x", 1<<20))
			done := make(chan error, 1)
			go func() { _, err := io.Copy(impatient{in}, log); done <- err }()
			if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, errNotRead) || time.Since(began) != logPatience {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			if _, err := io.ReadAll(out); !errors.Is(err, errNotRead) {
				t.Errorf("the reader hears %v", err)
			}
		})
	})
	t.Run("the reader is slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, in := io.Pipe()
			go func() {
				for range 100 {
					_, _ = impatient{in}.Write([]byte("line\n"))
					time.Sleep(time.Hour) // and the log silent
				}
				_ = in.Close()
			}()
			read := 0
			for buf := make([]byte, 5); ; read++ {
				time.Sleep(logPatience - time.Second)
				if _, err := io.ReadFull(out, buf); err != nil {
					break
				}
			}
			if read != 100 {
				t.Errorf("%d lines were read of 100", read)
			}
		})
	})
}
