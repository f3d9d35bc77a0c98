package occasional

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOneLinePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Interval: time.Minute}
		if n, ok := l.Pass(); !ok || n != 1 {
			t.Errorf("the first event: %d, %v", n, ok)
		}
		for range 41 {
			if _, ok := l.Pass(); ok {
				t.Fatal("a second line within the minute")
			}
		}
		time.Sleep(time.Minute)
		if n, ok := l.Pass(); !ok || n != 42 || l.Total() != 43 {
			t.Errorf("after a minute: %d of %d, %v; want 42 of 43", n, l.Total(), ok)
		}
	})
}
