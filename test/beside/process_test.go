package beside

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// process is a program that can be killed and started again.
type process struct {
	t    testing.TB
	name string
	path string
	args []string
	dir  string   // working directory; "" for that of the test
	env  []string // in addition to that of the test
	log  string   // file for its output, appended over restarts

	cmd  *exec.Cmd
	done chan struct{} // closed when the last run has ended
}

// start starts the program, which ends with the test. The kernel sends the death signal when the thread that
// forked exits, so one thread waits for the program.
func (p *process) start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd, done, started := exec.Command(p.path, p.args...), make(chan struct{}), make(chan error, 1)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, append(os.Environ(), p.env...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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
	if p.cmd == nil {
		p.t.Cleanup(p.kill)
	}
	p.cmd, p.done = cmd, done
}

// kill ends the program as kill -9 does.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// stop asks the program to end, and waits until it has.
func (p *process) stop() { p.end(syscall.SIGTERM) }

func (p *process) end(signal syscall.Signal) {
	p.signal(signal)
	<-p.done
}

func (p *process) signal(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // it may have ended
}

// hasEnded reports whether the program is not running.
func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// tail returns the last lines of the log.
func (p *process) tail(lines int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
