package vedette

import (
	"errors"
	"fmt"
)

// ErrorKind says what sort of failure an Error is. HTTP and gRPC each have one
// table from kind to status.
type ErrorKind string

// The kinds of an Error.
const (
	Invalid     ErrorKind = "invalid"     // the caller's input is wrong
	NotFound    ErrorKind = "not_found"   // what was named does not exist
	Conflict    ErrorKind = "conflict"    // another one holds the name or the term
	Denied      ErrorKind = "denied"      // known, and not allowed
	Unavailable ErrorKind = "unavailable" // may work when tried again
)

// Error is a failure that may be shown to a user: its message says what
// happened, where, and what to do. Any other error is shown as "internal error"
// and its text goes to the log.
type Error struct {
	Kind    ErrorKind
	Message string
	Err     error // the cause, for logs and errors.Is; may be nil
}

// Error returns the message, which holds the cause's text where there is one.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of a kind. A %w verb in the format keeps its cause.
func Errorf(kind ErrorKind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// KindOf returns the kind of the first Error in err's chain, or "" where there
// is none and the error is internal.
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
