package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/vedette-io/vedette/test/process"
)

// program is a running program that is measured.
type program struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has exited
	err  error         // after done
	log  string

	pprof string // where an agent serves its profiles, as host:port
}

// start starts a program. Its output goes to a file.
func (b *bench) start(name string, env []string, path string, args ...string) (*program, error) {
	log, err := os.CreateTemp(b.dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &program{name: name, cmd: exec.Command(path, args...), done: make(chan struct{}), log: log.Name()}
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
func (p *program) stop() {
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

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// checkRunning returns an error with the end of the log if a program has exited.
func (p *program) checkRunning() error {
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
type usage process.Usage

const mib = 1 << 20

func (u usage) memory() string {
	return fmt.Sprintf("%.1f MiB (peak %.1f, PSS %.1f)", float64(u.RSS)/mib, float64(u.Peak)/mib, float64(u.PSS)/mib)
}

func (u usage) cpu() string { return seconds(u.CPU) + " CPU" }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func (p *program) usage() (usage, error) { return usageOf(p.cmd.Process.Pid) }

func usageOf(pid int) (usage, error) {
	u, err := process.UsageOf(pid)
	return usage(u), err
}

// await polls done until it returns true, a program exits, or ctx ends.
func await(ctx context.Context, what string, every time.Duration, done func() (bool, error), programs ...*program) error {
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
