package operate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// lostTracker are what an operation does not know of its own requests: that one which
// changes something was sent, and neither it nor the same one once more was
// answered by a success. Whatever such an operation fails of in the end, it can't
// say that it did not take effect: an API server that refuses when it is asked
// again, or is gone by then, may have done it the first time.
type lostTracker struct {
	mu    sync.Mutex
	first *lostError
}

type lostTrackerKey struct{}

// withLostTracker begins the account of one operation.
func withLostTracker(ctx context.Context) (context.Context, *lostTracker) {
	l := &lostTracker{}
	return context.WithValue(ctx, lostTrackerKey{}, l), l
}

// recordLost notes that a request failed, of which an answer was lost before, and
// returns its error. The verbs go by it: what conflicts with itself is read again.
func recordLost(ctx context.Context, lost *lostError, err error) error {
	l, ok := ctx.Value(lostTrackerKey{}).(*lostTracker)
	if !ok || lost == nil {
		return err
	}
	if r := asStatusError(lost); r != nil { // its words and its reason may repeat the data of a Secret
		lost = &lostError{err: fmt.Errorf("it answered %d %s", r.Status, http.StatusText(r.Status))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = lost
	}
	return err
}

// hasLostAnswer reports whether an answer was lost so far, and none came to the same
// request made again but a no.
func hasLostAnswer(ctx context.Context) bool {
	l, ok := ctx.Value(lostTrackerKey{}).(*lostTracker)
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first != nil
}

// finalError returns the error that an operation ends with.
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
