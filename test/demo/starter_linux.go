package main

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// openProcess returns a function that waits until a process has ended, whether it is reaped or not.
func openProcess(pid int) (wait func(), err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return func() {
		defer unix.Close(fd)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}, nil
}

// endWithTerminal calls cancel when a terminal is closed, or its connection is lost. The signal for that is
// for the session's leader and for jobs that the leader starts. If make is the leader, as in `ssh -t HOST make
// demo`, it waits for the demo, which does not get the signal. What is not a terminal is ignored.
func endWithTerminal(cancel context.CancelCauseFunc, fd int) {
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		return
	}
	go func() {
		for {
			polled := []unix.PollFd{{Fd: int32(fd)}} // waits for a hangup only, not for input
			_, err := unix.Poll(polled, -1)
			switch {
			case errors.Is(err, unix.EINTR):
			case err == nil && polled[0].Revents&unix.POLLHUP != 0:
				cancel(errors.New("the terminal was closed"))
				return
			default:
				return
			}
		}
	}()
}
