package request

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/internal/fair"
)

// Control is what an operation asks its executor for. The zero value allows everything.
type Control struct {
	// MayChange waits until the operation may change something, and fails if it may not any more. It
	// is called before each request that changes something.
	MayChange func(context.Context) error
	// Wait runs the last part of an operation, which only waits.
	Wait func(context.Context, func(context.Context))
	// Memory holds the bytes of the operation, as what they become.
	Memory *fair.SplitGrant
}

// Wait runs the last part of an operation, which only waits.
func (s *Sender) Wait(ctx context.Context, wait func(context.Context)) {
	if s.control.Wait == nil {
		wait(ctx)
		return
	}
	s.control.Wait(ctx, wait)
}

// changeTracker records whether an operation has sent a request that changes something.
type changeTracker struct{ sent atomic.Bool }

// mayChange is called just before a request is sent, again for each retry. Whatever stood still since the
// operation was accepted, its deadline counts.
func (s *Sender) mayChange(ctx context.Context, req Request) error {
	if req.isReadOnly() || s.control.MayChange == nil {
		return nil
	}
	if err := s.control.MayChange(ctx); err != nil {
		if s.changes.sent.Load() {
			return finalError{fmt.Errorf("%w. This request was not sent, but an earlier one of the operation was", err)}
		}
		return finalError{fmt.Errorf("%w. It had no effect: no request that changes something was sent", err)}
	}
	return nil
}

// noteSent records that a request was sent, unless its error says that it was not.
func (s *Sender) noteSent(req Request, err error) {
	if !req.isReadOnly() && (err == nil || kube.MayHaveBeenSent(err)) {
		s.changes.sent.Store(true)
	}
}
