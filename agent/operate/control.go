package operate

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/vedette-io/vedette"
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

func (c Control) wait(ctx context.Context, wait func(context.Context)) {
	if c.Wait == nil {
		waitHere(ctx, wait)
		return
	}
	c.Wait(ctx, wait)
}

// waitHere waits in the middle of an operation, which continues with changes.
func waitHere(ctx context.Context, wait func(context.Context)) { wait(ctx) }

// changeTracker records whether an operation has sent a request that changes something.
type changeTracker struct{ sent atomic.Bool }

// mayChange is called just before a request is sent, again for each retry. Whatever stood still since the
// operation was accepted, its deadline counts.
func (r *run) mayChange(ctx context.Context, req request) error {
	if req.isReadOnly() || r.control.MayChange == nil {
		return nil
	}
	if err := r.control.MayChange(ctx); err != nil {
		if r.changes.sent.Load() {
			return finalError{fmt.Errorf("%w. This request was not sent, but an earlier one of the operation was", err)}
		}
		return finalError{fmt.Errorf("%w. It had no effect: no request that changes something was sent", err)}
	}
	return nil
}

// noteSent records that a request was sent, unless its error says that it was not.
func (r *run) noteSent(req request, err error) {
	if !req.isReadOnly() && (err == nil || kube.MayHaveBeenSent(err)) {
		r.changes.sent.Store(true)
	}
}

// decodedManifests is how many decoded copies of a manifest an operation has at most: of itself, of the
// object, of what was applied last, and of the result.
const decodedManifests = 4

// manifestOf returns the document of an operation; nil for none.
func manifestOf(args vedette.Args) []byte {
	switch a := args.(type) {
	case vedette.ApplyArgs:
		return a.Manifest
	case vedette.PatchArgs:
		return a.Patch
	case vedette.VersionArgs:
		return a.Manifest
	}
	return nil
}
