// Package process runs programs beside a test. They end with it, and their output goes to files.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Process is a program that was started.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{} // closed when the program has ended
}

// Start starts a program. Its output is appended to NAME.log in the directory of the command.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	return start(name, filepath.Join(cmd.Dir, name+".log"), cmd)
}

// start appends the output to a file. The kernel sends the death signal when the thread that forked exits, so one
// thread waits for the program.
func start(name, logFile string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, log: logFile, cmd: cmd, done: make(chan struct{})}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout = log
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = diesWithParent()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the log contains the reason
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Stop asks the program to end, and waits until it has. A process that was not started has ended.
func (p *Process) Stop() { p.end(syscall.SIGTERM) }

// Kill ends the program as kill -9 does.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

func (p *Process) end(signal syscall.Signal) {
	if p == nil {
		return
	}
	_ = p.signal(signal) // it ends with the test in any case
	<-p.done
}

// Pause makes the program stand still until Resume.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// signal sends a signal; a program that has ended needs none.
func (p *Process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Exited returns an error if the program has ended.
func (p *Process) Exited() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s exited (%v)", p.name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// Tail returns the last lines of the log.
func (p *Process) Tail() string {
	if p == nil {
		return ""
	}
	return tail(p.name, p.log)
}

// tailLines is how many lines of a log are shown.
const tailLines = 20

func tail(name, log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error() + "\n"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return name + ":\n" + strings.Join(lines[max(0, len(lines)-tailLines):], "\n") + "\n"
}
