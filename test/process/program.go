package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Program is a program that a test starts again and again. It ends with the test. Its methods can be called at once.
type Program struct {
	T    testing.TB
	Name string
	Path string
	Args []string
	Log  string                 // file for its output, appended over starts
	Env  func(start int) string // NAME=VALUE in addition to the environment of the test, by the number of the start from 0; nil for none

	mu        sync.Mutex
	running   *Process
	starts    int
	isStopped bool // by the test
}

// Start starts the program, which must not be running.
func (p *Program) Start() {
	p.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.Command(p.Path, p.Args...)
	if p.Env != nil {
		cmd.Env = append(os.Environ(), p.Env(p.starts))
	}
	running, err := start(p.Name, p.Log, cmd)
	if err != nil {
		p.T.Fatal(err)
	}
	if p.starts == 0 {
		p.T.Cleanup(p.Kill)
	}
	p.running, p.isStopped = running, false
	p.starts++
}

// Kill ends the program as kill -9 does.
func (p *Program) Kill() {
	if running := p.stopped(); running != nil {
		running.Kill()
	}
}

// Stop asks the program to end, and waits until it has.
func (p *Program) Stop() {
	if running := p.stopped(); running != nil {
		running.Stop()
	}
}

// stopped records that the test ends the program, and returns the last process; nil if there was none.
func (p *Program) stopped() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isStopped = true
	return p.running
}

// Pause makes the program stand still until Resume.
func (p *Program) Pause() { p.check(p.Process().Pause()) }

// Resume ends Pause.
func (p *Program) Resume() { p.check(p.Process().Resume()) }

func (p *Program) check(err error) {
	if err != nil {
		p.T.Error(err)
	}
}

// Process returns the process of the last start; nil if there was none.
func (p *Program) Process() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Starts returns how often the program was started.
func (p *Program) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// IsRunning reports whether the program was started and not ended by the test.
func (p *Program) IsRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running != nil && !p.isStopped
}

// Exited returns an error with the end of the log if the program has ended without the test.
func (p *Program) Exited() error {
	if !p.IsRunning() {
		return nil
	}
	if err := p.Process().Exited(); err != nil && p.IsRunning() {
		return fmt.Errorf("%w unexpectedly:\n%s", err, p.Tail())
	}
	return nil
}

// Tail returns the last lines of the log.
func (p *Program) Tail() string { return tail(p.Name, p.Log) }
