package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used.
type Usage struct {
	RSS, Peak, PSS int64         // resident memory in bytes: now, at most, and with its share of what is shared
	CPU            time.Duration // user and system
}

// Ticks is the number of the kernel's clock ticks in a second, in which it states processor time.
const Ticks = 100

// Usage returns what the program has used so far.
func (p *Process) Usage() (Usage, error) { return UsageOf(p.cmd.Process.Pid) }

// UsageOf returns what a process has used so far. Only Linux says it.
func UsageOf(pid int) (Usage, error) {
	var u Usage
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	for file, fields := range map[string]map[string]*int64{
		"status":       {"VmRSS": &u.RSS, "VmHWM": &u.Peak},
		"smaps_rollup": {"Pss": &u.PSS},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return u, fmt.Errorf("read what process %d uses: %w", pid, err)
		}
		parseFields(string(text), fields)
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return u, fmt.Errorf("read what process %d uses: %w", pid, err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name, which may contain any characters
	words := strings.Fields(rest)
	for _, word := range words[11:13] { // utime and stime
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return u, fmt.Errorf("read the processor time of process %d: %w", pid, err)
		}
		u.CPU += time.Duration(n) * time.Second / Ticks
	}
	return u, nil
}

// parseFields reads lines such as "VmRSS:  1234 kB".
func parseFields(text string, fields map[string]*int64) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		if into := fields[name]; into != nil {
			_, _ = fmt.Sscan(value, into) // the kernel always writes numbers
			*into <<= 10
		}
	}
}
