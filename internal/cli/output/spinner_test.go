package output

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpinnerShowsOnlyLongTasks checks that only long tasks are shown, and that the line is removed at the end.
func TestSpinnerShowsOnlyLongTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		s := &Spinner{w: &b}
		s.start()
		quick := s.Track("quick")
		time.Sleep(time.Second)
		quick()
		slow := s.Track("dev: delete pod/a")
		also := s.Track("prod: delete pod/a")
		time.Sleep(2100 * time.Millisecond)
		synctest.Wait()
		if b.String() != "dev: delete pod/a (2s), and 1 more" {
			t.Errorf("got %q", b.String())
		}
		also()
		slow()
		s.Stop()
		if !strings.HasSuffix(b.String(), "\r\x1b[K") {
			t.Errorf("got %q", b.String())
		}
	})
	if s := NewSpinner(&bytes.Buffer{}); s.quit != nil {
		t.Error("got a spinner for a buffer, want none")
	}
}
