package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running program that is measured.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has exited
	err  error         // after done
	log  string

	pprof string // where an agent serves its profiles, as host:port
}

// start starts a program. Its output goes to a file.
func (b *bench) start(name string, env []string, program string, args ...string) (*process, error) {
	log, err := os.CreateTemp(b.dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{name: name, cmd: exec.Command(program, args...), done: make(chan struct{}), log: log.Name()}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Ctrl-C does not stop the program before bench does
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop stops a program and waits for it. It may have exited before.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have exited
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.kill()
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// checkRunning returns an error with the end of the log if a program has exited.
func (p *process) checkRunning() error {
	select {
	case <-p.done:
		text, err := os.ReadFile(p.log)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return errors.Join(fmt.Errorf("%s exited (%w), the end of its log:\n%s", p.name, p.err,
			strings.Join(lines[max(0, len(lines)-10):], "\n")), err)
	default:
		return nil
	}
}

// usage is what a process has used.
type usage struct {
	RSS, Peak, PSS int64         // bytes
	CPU            time.Duration // user and system
}

const mib = 1 << 20

func (u usage) memory() string {
	return fmt.Sprintf("%.1f MiB (peak %.1f, PSS %.1f)", float64(u.RSS)/mib, float64(u.Peak)/mib, float64(u.PSS)/mib)
}

func (u usage) cpu() string { return seconds(u.CPU) + " CPU" }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// ticks is the number of kernel clock ticks in a second.
const ticks = 100

func (p *process) usage() (usage, error) { return usageOf(p.cmd.Process.Pid) }

// usageOf reads the memory and CPU time of a process from /proc.
func usageOf(pid int) (usage, error) {
	var u usage
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	for file, fields := range map[string]map[string]*int64{
		"status":       {"VmRSS": &u.RSS, "VmHWM": &u.Peak},
		"smaps_rollup": {"Pss": &u.PSS},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return u, err
		}
		parseFields(string(text), fields)
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return u, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name, which may contain any characters
	words := strings.Fields(rest)
	for _, word := range words[11:13] { // utime and stime
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return u, err
		}
		u.CPU += time.Duration(n) * time.Second / ticks
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

// await polls done until it returns true, a program exits, or ctx ends.
func await(ctx context.Context, what string, every time.Duration, done func() (bool, error), programs ...*process) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil {
			last = err
		}
		for _, p := range programs {
			if err := p.checkRunning(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for %s (last error: %w): %w", what, last, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
