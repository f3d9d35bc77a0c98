package logthrottle

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOneEventPassesPerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limiter{Interval: time.Minute}
		if n, ok := l.Allow(); !ok || n != 1 {
			t.Errorf("first event: got %d, %v", n, ok)
		}
		for range 41 {
			if _, ok := l.Allow(); ok {
				t.Fatal("a second event was allowed within the minute")
			}
		}
		time.Sleep(time.Minute)
		if n, ok := l.Allow(); !ok || n != 42 || l.Total() != 43 {
			t.Errorf("after a minute: got %d of %d, %v, want 42 of 43", n, l.Total(), ok)
		}
	})
}
