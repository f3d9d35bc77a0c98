package operate

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// lostTracker records whether an operation sent a request that may have changed something, and
// got a success neither for it nor for a retry of it. If such an operation fails later, for
// whatever reason, it is lost and not failed, because the first request may have taken effect.
type lostTracker struct {
	mu    sync.Mutex
	first *lostError
}

// record records the lost answer of a request, nil for none, that failed in the end. It returns
// the request's error unchanged: verbs decide by it, for example to read again after a conflict.
func (l *lostTracker) record(lost *lostError, err error) error {
	if lost == nil {
		return err
	}
	if statusErr := asStatusError(lost); statusErr != nil { // its message and reason may quote the data of a Secret
		lost = &lostError{err: fmt.Errorf("it answered %d %s", statusErr.Status, http.StatusText(statusErr.Status))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = lost
	}
	return err
}

// hasLostAnswer reports whether the answer of a request was lost, and no retry of it succeeded.
func (l *lostTracker) hasLostAnswer() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first != nil
}

// finalError returns the error that the operation ends with.
func (l *lostTracker) finalError(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var existing *lostError
	switch {
	case err == nil || l.first == nil || errors.As(err, &existing):
		return err
	case mayHaveTakenEffect(err):
		return &lostError{err: err}
	}
	return &lostError{err: fmt.Errorf("%w; then: %w", l.first.err, err)}
}
