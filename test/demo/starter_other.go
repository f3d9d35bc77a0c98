//go:build unix && !linux

package main

import (
	"context"
	"syscall"
	"time"
)

// openProcess returns a function that waits until a process has ended.
func openProcess(pid int) (wait func(), err error) {
	if err := syscall.Kill(pid, 0); err != nil {
		return nil, err
	}
	return func() {
		for syscall.Kill(pid, 0) == nil {
			time.Sleep(250 * time.Millisecond)
		}
	}, nil
}

// endWithTerminal does nothing: on these systems a demo whose terminal was closed may have to be ended by hand.
func endWithTerminal(context.CancelCauseFunc, int) {}
