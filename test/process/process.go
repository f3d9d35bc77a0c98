// Package process runs programs beside a test. They end with it, and their output goes to files.
package process

import (
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

// Start starts a program. Its output goes to NAME.log in the directory of the command. The kernel
// sends the death signal when the thread that forked exits, so one thread waits for the program.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(cmd.Dir, name+".log"), cmd: cmd, done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, diesWithParent()
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

// Stop ends the program, and waits for it. A process that was not started has ended.
func (p *Process) Stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-p.done
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
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error() + "\n"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return p.name + ":\n" + strings.Join(lines[max(0, len(lines)-10):], "\n") + "\n"
}
