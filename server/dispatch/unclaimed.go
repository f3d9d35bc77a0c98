package dispatch

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
)

// unclaimedOutcome is an outcome for which nobody waits at this server.
type unclaimedOutcome struct {
	agent *AttachedAgent
	id    vedette.OperationID
}

const (
	// maxUnclaimed is how many unclaimed outcomes wait to be looked up. The agents keep the others, and send them again when they connect
	// next, or drop them after a time of their own.
	maxUnclaimed = 1000
	// maxUnclaimedLookup is how long a look into the history may take. The agent keeps an outcome of which nothing is known.
	maxUnclaimedLookup = 2 * time.Second
)

// forgetUnclaimed lets an agent forget an outcome for which nobody waits here, unless another server may need it: an agent that has
// lost its server connects to another one, and sends its outcomes before the server that accepted the operation has found it. If
// the agent forgot such an outcome, it would execute the operation again.
func (d *Dispatcher) forgetUnclaimed(a *AttachedAgent, id vedette.OperationID) {
	if d.remote == nil {
		a.stream.Forget(id)
		return
	}
	select {
	case d.unclaimed <- unclaimedOutcome{a, id}:
	default:
	}
}

// forgetEnded lets agents forget the outcomes of operations that have ended, until ctx ends. It looks up one after the other, so that an
// agent that sends many outcomes costs the database one statement at a time.
func (d *Dispatcher) forgetEnded(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case u := <-d.unclaimed:
			if d.hasEnded(ctx, u.id) {
				u.agent.stream.Forget(u.id)
			}
		}
	}
}

// hasEnded reports whether no server waits for the outcome of an operation: it has ended, it only reads, or this server has
// accepted it and waits no longer.
func (d *Dispatcher) hasEnded(ctx context.Context, id vedette.OperationID) bool {
	ctx, cancel := context.WithTimeout(ctx, maxUnclaimedLookup)
	defer cancel()
	d.mu.Lock()
	isAccepted := d.accepted[id] != nil
	d.mu.Unlock()
	if isAccepted { // it is about to be sent to the agent, which answers with the outcome
		return false
	}
	row, err := d.store.Operation(ctx, id)
	if err != nil {
		return vedette.KindOf(err) == vedette.NotFound
	}
	return row.State != history.Pending || row.Server == d.cfg.Server
}
