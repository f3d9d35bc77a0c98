package readtest

import (
	"fmt"

	"github.com/vedette-io/vedette/server/readlimit"
)

// Fill takes all that a limiter has, as many callers, and returns how much that was
// and what gives it back.
func Fill(l *readlimit.Limiter) (bytes int64, free func()) {
	var held []func()
	for _, piece := range []int64{2 << 20, 256 << 10, 4 << 10} { // of each of its pools
		for {
			release := l.TryAcquire(fmt.Sprint("caller ", len(held)), piece)
			if release == nil {
				break
			}
			bytes += piece
			held = append(held, release)
		}
	}
	return bytes, func() {
		for _, release := range held {
			release()
		}
	}
}
