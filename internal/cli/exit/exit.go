// Package exit has the error by which a command chooses its exit code.
package exit

import "fmt"

// Error ends the program with an exit code of its own.
type Error struct {
	Code int
	Err  error // nil if everything was printed already
}

func (e Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e Error) Unwrap() error { return e.Err }
