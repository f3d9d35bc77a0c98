package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuLoad is how much processor time was used up to a moment: by the machine, and by
// us and those whom we started and that have ended.
type cpuLoad struct {
	at         time.Time
	busy, ours time.Duration
}

func currentLoad() cpuLoad {
	l := cpuLoad{at: time.Now(), busy: busyTime()}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			l.ours += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return l
}

// busyTime reads the first line of /proc/stat: user, nice, system, idle, waiting
// for disks, interrupts, soft interrupts, stolen by other machines.
func busyTime() (busy time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(line) {
		n, err := strconv.ParseInt(word, 10, 64)
		if idle := i == 4 || i == 5; err == nil && !idle && i <= 8 {
			busy += time.Duration(n) * time.Second / ticks
		}
	}
	return busy
}

// otherProgramsSince says what others took of the machine since before, which is what a
// reader must know of figures that were measured meanwhile.
func (l cpuLoad) otherProgramsSince(before cpuLoad, cores int) string {
	others := (l.busy - before.busy) - (l.ours - before.ours)
	whole := l.at.Sub(before.at) * time.Duration(cores)
	if whole <= 0 || l.busy == 0 {
		return ""
	}
	return fmt.Sprintf("Other programs took %.0f %% of the machine meanwhile.", 100*max(0, others.Seconds())/whole.Seconds())
}
