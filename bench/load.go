package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vedette-io/vedette/test/process"
)

// cpuLoad is the CPU time that was used until now: by the machine, and by this process and its
// children that have exited.
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

// busyTime reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
// steal.
func busyTime() (busy time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(line) {
		n, err := strconv.ParseInt(word, 10, 64)
		if idle := i == 4 || i == 5; err == nil && !idle && i <= 8 {
			busy += time.Duration(n) * time.Second / process.Ticks
		}
	}
	return busy
}

// otherProgramsSince returns a sentence about the CPU time of other programs, because a busy
// machine distorts the figures.
func (l cpuLoad) otherProgramsSince(before cpuLoad, cores int) string {
	others := (l.busy - before.busy) - (l.ours - before.ours)
	whole := l.at.Sub(before.at) * time.Duration(cores)
	if whole <= 0 || l.busy == 0 {
		return ""
	}
	return fmt.Sprintf("Other programs took %.0f %% of the machine meanwhile.", 100*max(0, others.Seconds())/whole.Seconds())
}
