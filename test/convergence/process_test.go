package convergence

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// process is one of our programs. It can be killed, paused and started again.
type process struct {
	t    testing.TB
	name string
	path string
	args []string
	log  string // the file for its output, appended over restarts

	starts int // so far; used only by start

	mu            sync.Mutex
	cmd           *exec.Cmd
	done          chan struct{} // closed when the last run has ended
	stoppedByTest bool          // the exit was requested
}

// start starts the program. It dies with the test in all cases. The kernel sends the death signal
// when the thread that forked exits, so one thread waits for the program.
func (p *process) start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), skewEnv(*skew, p.name, p.starts))
	p.starts++
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the log contains the reason
		}
	}()
	if err := <-started; err != nil {
		p.t.Fatalf("start %s: %v", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done, p.stoppedByTest = cmd, done, false
}

// kill sends SIGKILL and returns when the program is gone.
func (p *process) kill() { p.endWith(syscall.SIGKILL) }

// stop sends SIGTERM and returns when the program is gone.
func (p *process) stop() { p.endWith(syscall.SIGTERM) }

func (p *process) endWith(signal syscall.Signal) {
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.stoppedByTest = true
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %s: %v", p.name, err)
	}
	<-done
}

// pause freezes the program until resume.
func (p *process) pause()  { p.signal(syscall.SIGSTOP) }
func (p *process) resume() { p.signal(syscall.SIGCONT) }

func (p *process) signal(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %s: %v", p.name, err)
	}
}

// isRunning reports whether the program was started and not stopped by the test.
func (p *process) isRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stoppedByTest
}

// unexpectedExit returns an error if the program exited without being stopped. Our programs must
// never exit because of something that can recover.
func (p *process) unexpectedExit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.stoppedByTest {
		return nil
	}
	select {
	case <-p.done:
		return fmt.Errorf("%s exited unexpectedly (%v):\n%s", p.name, p.cmd.ProcessState, tail(p.log, 10))
	default:
		return nil
	}
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
