package request

import (
	"fmt"
	"net/http"
	"sync"
)

// lostTracker records whether an operation sent a request that may have changed something, and
// got a success neither for it nor for a retry of it. If such an operation fails later, for
// whatever reason, it is lost and not failed, because the first request may have taken effect.
type lostTracker struct {
	mu    sync.Mutex
	first *LostError
}

// recordLost records the lost answer of a request, nil for none, that failed in the end. It returns
// the request's error unchanged: verbs decide by it, for example to read again after a conflict.
func (s *Sender) recordLost(lost *LostError, err error) error {
	if lost == nil {
		return err
	}
	if statusErr := AsStatusError(lost); statusErr != nil { // its message and reason may quote the data of a Secret
		lost = &LostError{Err: fmt.Errorf("it answered %d %s", statusErr.Status, http.StatusText(statusErr.Status))}
	}
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	if s.lost.first == nil {
		s.lost.first = lost
	}
	return err
}

// HasLostAnswer reports whether the answer of a request was lost, and no retry of it succeeded.
func (s *Sender) HasLostAnswer() bool {
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	return s.lost.first != nil
}

// FinalError returns the error that the operation ends with, if it failed with err.
func (s *Sender) FinalError(err error) error {
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	switch {
	case err == nil || s.lost.first == nil || IsLost(err):
		return err
	case mayHaveTakenEffect(err):
		return &LostError{Err: err}
	}
	return &LostError{Err: fmt.Errorf("%w; then: %w", s.lost.first.Err, err)}
}
