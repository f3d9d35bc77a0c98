package uplink

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns for how long the machine has been suspended since it started. Go's clock stands
// still meanwhile.
func suspended() time.Duration {
	var all, running unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &running) != nil {
		return 0 // kernels before 2.6.39
	}
	return time.Duration(all.Nano() - running.Nano()).Truncate(time.Millisecond) // the two calls are some nanoseconds apart
}
