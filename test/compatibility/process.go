package compatibility

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// process is one of our programs.
type process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{} // closed when the program has ended
}

// startProcess starts a program from a directory, to which it logs. The kernel sends the death signal
// when the thread that forked exits, so one thread waits for the program.
func startProcess(dir, name string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(filepath.Join(dir, name), args...)
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

// stop ends the program. A process that was not started has ended.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-p.done
}

// exited returns an error if the program has ended.
func (p *process) exited() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s exited (%v)", p.name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// tail returns the last lines of the log.
func (p *process) tail() string {
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
