package operate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// losses are what an operation does not know of its own requests: that one which
// changes something was sent, and neither it nor the same one once more was
// answered by a success. Whatever such an operation fails of in the end, it can't
// say that it did not take effect: an API server that refuses when it is asked
// again, or is gone by then, may have done it the first time.
type losses struct {
	mu    sync.Mutex
	first *lostError
}

type lossesKey struct{}

// withLosses begins the account of one operation.
func withLosses(ctx context.Context) (context.Context, *losses) {
	l := &losses{}
	return context.WithValue(ctx, lossesKey{}, l), l
}

// noteLost notes that a request failed, of which an answer was lost before, and
// returns its error. The verbs go by it: what conflicts with itself is read again.
func noteLost(ctx context.Context, lost *lostError, err error) error {
	l, ok := ctx.Value(lossesKey{}).(*losses)
	if !ok || lost == nil {
		return err
	}
	if r := refusalOf(lost); r != nil { // its words and its reason may repeat the data of a Secret
		lost = &lostError{err: fmt.Errorf("it answered %d %s", r.Status, http.StatusText(r.Status))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = lost
	}
	return err
}

// lostBefore reports whether an answer was lost so far, and none came to the same
// request made again but a no.
func lostBefore(ctx context.Context) bool {
	l, ok := ctx.Value(lossesKey{}).(*losses)
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first != nil
}

// weigh returns the error that an operation ends with.
func (l *losses) weigh(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var known *lostError
	switch {
	case err == nil || l.first == nil || errors.As(err, &known):
		return err
	case undecided(err):
		return &lostError{err: err}
	}
	return &lostError{err: fmt.Errorf("%w; then: %w", l.first.err, err)}
}
