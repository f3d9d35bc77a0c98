package readtest

import (
	"fmt"

	"github.com/vedette-io/vedette/server/readlimit"
)

// Exhaust takes all that a limiter has, as many callers, and returns how much that was
// and what gives it back.
func Exhaust(l *readlimit.Limiter) (bytes int64, releaseAll func()) {
	var releases []func()
	for _, chunk := range []int64{2 << 20, 256 << 10, 4 << 10} { // of each of its pools
		for {
			release := l.TryAcquire(fmt.Sprint("caller ", len(releases)), chunk)
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
