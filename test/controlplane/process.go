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

// process is one program of a plane: it can be started, killed and started
// again with the same arguments.
type process struct {
	name string
	path string
	args []string
	dir  string // its working directory and HOME
	log  string // the file that gets its output, appended over restarts

	mu       sync.Mutex
	latest   *processRun // the latest; nil before the first
	restarts int         // how often it is still started again when it ends by itself
}

// processRun is one life of a process.
type processRun struct {
	cmd      *exec.Cmd
	done     chan struct{} // closed by its goroutine once the process is reaped
	expected bool          // we killed it; guarded by process.mu
	exitErr  error         // set before done is closed
}

// start starts the program unless it runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != nil && !p.latest.hasEnded() {
		return fmt.Errorf("start %s: it is running", p.name)
	}
	return p.startLocked()
}

func (p *process) startLocked() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close() // the child has its own
	r := &processRun{cmd: exec.Command(p.path, p.args...), done: make(chan struct{})}
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = p.dir, log, log
	r.cmd.Env = []string{"HOME=" + p.dir, "TMPDIR=" + p.dir, "PATH=" + os.Getenv("PATH")}
	r.cmd.SysProcAttr = attributes()
	if err := r.start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.latest = r
	go func() { <-r.done; p.restart(r) }()
	return nil
}

// restart starts the program anew where it ended by itself and may be. Whatever
// becomes of that is told by accident.
func (p *process) restart(r *processRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != r || r.expected || p.restarts == 0 {
		return
	}
	p.restarts--
	_ = p.startLocked() // the run that ended stays the latest then
}

// start starts the command and waits for its end on a thread that does nothing
// else: the kernel's death signal is tied to the thread that forks, and the
// runtime may end a thread long before the program ends.
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

// pause stops the running program, and returns when it has stopped: its threads do
// so one by one, some time after the signal was sent.
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
	return fmt.Errorf("%s did not stop within a second of being told to", p.name)
}

// isStopped reports whether all threads of a process are stopped, as the kernel
// shows them. See proc_pid_stat(5): the state follows the name, in parentheses.
func isStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("look at the threads of process %d: there are none (%v)", pid, err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended
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

// endWith sends a signal after which the program's end is no accident, and waits for
// that. A program that does not run is fine.
func (p *process) endWith(sig syscall.Signal) {
	if ended := p.signalExpectingExit(sig); ended != nil {
		<-ended
	}
}

// terminate is end by SIGTERM, for as long as the context allows.
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

// signalExpectingExit sends a signal and returns what will be closed when the program is
// gone, or nil if it does not run.
func (p *process) signalExpectingExit(sig syscall.Signal) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil || p.latest.hasEnded() {
		return nil
	}
	p.latest.expected = true
	_ = p.latest.cmd.Process.Signal(sig) // it may end by itself just now
	return p.latest.done
}

// unexpectedExit returns nil while the program runs or is about to be started again, was
// never started or was ended by us, and else how it ended and the last lines of its
// log.
func (p *process) unexpectedExit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil || p.latest.expected || !p.latest.hasEnded() || p.restarts > 0 {
		return nil
	}
	return fmt.Errorf("%s ended by itself (%v); its last words:\n%s", p.name, p.latest.exitErr, p.tail())
}

func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), 15)
}

// processes are those of a plane in the order of their start.
type processes struct{ list []*process }

func (ps *processes) byName(name string) *process {
	for _, p := range ps.list {
		if p.name == name {
			return p
		}
	}
	return nil
}

// killAll ends all, the last started first, so that none complains of another's
// absence.
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

// pid is the id of the running program, or 0.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil || p.latest.hasEnded() {
		return 0
	}
	return p.latest.cmd.Process.Pid
}
