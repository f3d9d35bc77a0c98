package program

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// minReserve and maxReserve are what a middle-sized and a large container keep free for what GoLimit does not include.
const (
	minReserve = 100 << 20
	maxReserve = 256 << 20
)

// GoLimit returns the soft limit of Go's memory in a container with so many bytes: four fifths, or 256 MiB less; three quarters
// below 400 MiB. The rest is for what Go does not count, as the program itself and the memory of SQLite, and for what is allocated
// while garbage is collected. Without a soft limit, Go lets garbage grow up to what is in use, so that a program that uses
// 300 MiB is ended in a container of 512.
func GoLimit(container uint64) int64 {
	return int64(min(container, math.MaxInt64) - min(container/4, max(minReserve, container/5), maxReserve))
}

// limitMemory tells Go how much memory the container has, unless the user does by GOMEMLIMIT.
func limitMemory(log *slog.Logger, lookup func(string) (string, bool), container memlimit.Provider) {
	if _, isSet := lookup("GOMEMLIMIT"); isSet {
		return
	}
	bytes, err := container()
	if err != nil || bytes == 0 || bytes > math.MaxInt64 {
		return // there is no limit, or not on this system
	}
	debug.SetMemoryLimit(GoLimit(bytes))
	log.Debug("memory is limited by the container", "bytes", bytes)
}

func limitMemoryByContainer(log *slog.Logger) { limitMemory(log, os.LookupEnv, memlimit.FromCgroup) }
