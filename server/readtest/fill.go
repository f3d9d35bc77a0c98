package readtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/readlimit"
)

// Exhaust acquires all bytes of a limiter, as many callers. It returns their number and a function
// that releases them.
func Exhaust(l *readlimit.Limiter) (bytes int64, releaseAll func()) {
	var releases []func()
	for _, chunk := range []int64{2 << 20, 256 << 10, 4 << 10} { // one size for each pool
		for {
			release := l.TryAcquire(readlimit.Caller{Source: fmt.Sprint("caller ", len(releases))}, chunk)
			if release == nil {
				break
			}
			bytes += chunk
			releases = append(releases, release)
		}
	}
	return bytes, func() {
		for _, release := range releases {
			release()
		}
	}
}

// AwaitFree waits until so much memory of a limiter is free: a request gives its memory back after a large answer has been sent.
func AwaitFree(t testing.TB, l *readlimit.Limiter, want int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		free, release := Exhaust(l)
		release()
		if free == want {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("free memory: got %d bytes, want %d as before the requests", free, want)
			return
		}
	}
}
