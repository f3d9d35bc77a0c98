package vedette

import (
	"errors"
	"fmt"
)

// ErrorKind classifies an Error. HTTP and gRPC each have one table from kind to status.
type ErrorKind string

// The kinds of an Error.
const (
	Invalid     ErrorKind = "invalid"     // the caller's input is wrong
	NotFound    ErrorKind = "not_found"   // what was named does not exist
	Conflict    ErrorKind = "conflict"    // the name or the term is taken
	Denied      ErrorKind = "denied"      // the caller is known and not allowed
	Unavailable ErrorKind = "unavailable" // a retry may succeed
	// UnknownKind means that no cluster serves a kind of Kubernetes with that name.
	UnknownKind ErrorKind = "unknown_kind"
	// NotCached means that clusters serve a kind, and no agent reports it: only they can be asked for its objects.
	NotCached ErrorKind = "not_cached"
	// Waiting means that nothing failed: an account waits for its turn. Only account errors have it.
	Waiting ErrorKind = "waiting"
)

// Error is a failure that may be shown to a user. Its message says what failed, on
// what, and what to do. Any other error is shown as "internal error", and its text goes
// to the log only.
type Error struct {
	Kind    ErrorKind
	Message string
	Err     error // the cause, for logs and errors.Is; may be nil
}

// Error returns the message, which includes the cause's text if there is a cause.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of a kind. A %w verb in the format wraps the cause.
func Errorf(kind ErrorKind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// KindOf returns the kind of the first Error in err's chain; "" for an internal error,
// which has none.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
