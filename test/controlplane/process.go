//go:build unix

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

var errNotRunning = errors.New("not running")

// process is one program of a plane. It can be started, killed and started again with the same
// arguments.
type process struct {
	name string
	path string
	args []string
	dir  string // its working directory and HOME
	log  string // the file for its output, appended over restarts

	mu       sync.Mutex
	latest   *processRun // the last run; nil before the first
	restarts int         // how often it may still be restarted after an unexpected exit
}

// processRun is one run of a process.
type processRun struct {
	cmd      *exec.Cmd
	done     chan struct{} // closed when the process has been reaped
	expected bool          // the exit was requested; guarded by process.mu
	exitErr  error         // set before done is closed
}

// start starts the program. It fails if it is running.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != nil && !p.latest.hasEnded() {
		return fmt.Errorf("start %s: it is already running", p.name)
	}
	return p.startLocked()
}

func (p *process) startLocked() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close() // the child has its own descriptor
	r := &processRun{cmd: exec.Command(p.path, p.args...), done: make(chan struct{})}
	r.cmd.Dir = p.dir
	r.cmd.Stdout = log
	r.cmd.Stderr = log
	r.cmd.Env = []string{"HOME=" + p.dir, "TMPDIR=" + p.dir, "PATH=" + os.Getenv("PATH")}
	r.cmd.SysProcAttr = attributes()
	if err := r.start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.latest = r
	go func() { <-r.done; p.restart(r) }()
	return nil
}

// restart restarts the program after an unexpected exit if that is allowed. unexpectedExit reports
// a failure.
func (p *process) restart(r *processRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != r || r.expected || p.restarts == 0 {
		return
	}
	p.restarts--
	_ = p.startLocked() // on failure the previous run stays the latest
}

// start starts the command, and waits for its exit on a thread that does nothing else, because the
// kernel sends the death signal when the thread that forked exits, and the runtime may end a thread
// long before the program ends.
func (r *processRun) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		started <- err
		if err == nil {
			r.exitErr = r.cmd.Wait()
			close(r.done)
		}
	}()
	return <-started
}

func (r *processRun) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to the running program.
func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil || p.latest.hasEnded() {
		return fmt.Errorf("signal %s: %w", p.name, errNotRunning)
	}
	return p.latest.cmd.Process.Signal(sig)
}

// pause stops the running program. It returns when all threads have stopped, which takes some time
// after the signal.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for range 1000 {
		stopped, err := isStopped(p.pid())
		if stopped || err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%s did not stop within a second after SIGSTOP", p.name)
}

// isStopped reports whether all threads of a process are stopped. See proc_pid_stat(5): the state
// follows the name, which is in parentheses.
func isStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("find the threads of process %d: there are none (%w)", pid, err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		if after := bytes.LastIndexByte(stat, ')'); after < 0 || !bytes.HasPrefix(stat[after+1:], []byte(" T")) {
			return false, nil
		}
	}
	return true, nil
}

// endWith sends a signal that ends the program and waits for the exit, which is then expected. It
// does nothing if the program is not running.
func (p *process) endWith(sig syscall.Signal) {
	if ended := p.signalExpectingExit(sig); ended != nil {
		<-ended
	}
}

// terminate sends SIGTERM and waits for the exit until ctx ends.
func (p *process) terminate(ctx context.Context) error {
	ended := p.signalExpectingExit(syscall.SIGTERM)
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", p.name, context.Cause(ctx))
	}
}

// signalExpectingExit sends a signal and returns a channel that is closed when the program is gone,
// or nil if it is not running.
func (p *process) signalExpectingExit(sig syscall.Signal) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil || p.latest.hasEnded() {
		return nil
	}
	p.latest.expected = true
	_ = p.latest.cmd.Process.Signal(sig) // fails if it has just ended
	return p.latest.done
}

// unexpectedExit returns an error with the end of the log if the program exited and was not stopped
// by us. It returns nil if the program is running, was never started, or is about to be restarted.
func (p *process) unexpectedExit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil || p.latest.expected || !p.latest.hasEnded() || p.restarts > 0 {
		return nil
	}
	return fmt.Errorf("%s exited unexpectedly (%w), the end of its log:\n%s", p.name, p.latest.exitErr, p.tail())
}

func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), 15)
}

// processes are the processes of a plane in start order.
type processes struct{ list []*process }

func (ps *processes) byName(name string) *process {
	for _, p := range ps.list {
		if p.name == name {
			return p
		}
	}
	return nil
}

// killAll kills all processes, the last started first, so that none logs errors because another one
// is missing.
func (ps *processes) killAll() {
	for i := len(ps.list) - 1; i >= 0; i-- {
		ps.list[i].endWith(syscall.SIGKILL)
	}
}

func (ps *processes) unexpectedExit() error {
	for _, p := range ps.list {
		if err := p.unexpectedExit(); err != nil {
			return err
		}
	}
	return nil
}

// pid returns the process id, or 0 if the program is not running.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil || p.latest.hasEnded() {
		return 0
	}
	return p.latest.cmd.Process.Pid
}
