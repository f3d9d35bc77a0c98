package main

import (
	"context"
	"fmt"
)

// endWith calls cancel when one of the processes has ended. make is killed without telling its children,
// and it sends a signal to the shell that it started, but not to what the shell started. A process id
// of 0 is ignored.
func endWith(cancel context.CancelCauseFunc, pids ...int) error {
	for _, pid := range pids {
		if pid == 0 {
			continue
		}
		wait, err := openProcess(pid)
		if err != nil {
			return fmt.Errorf("watch the process %d that started the demo: %w", pid, err)
		}
		go func() {
			wait()
			cancel(fmt.Errorf("the process %d that started the demo has ended", pid))
		}()
	}
	return nil
}
