package uplink

import (
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
)

// Delivery is one arrival of an operation over a connection. It knows whether the operation is still
// wanted.
type Delivery struct {
	link     *link
	late     func() time.Duration // by how much the deadline has passed, by the server's clock; nil for no deadline
	deadline time.Time            // by the agent's clock; zero for none
}

// newDelivery returns the delivery of an operation that has arrived now. An older server sends no stamp. Then
// the deadline counts from the arrival.
func (l *link) newDelivery(timeout time.Duration, sentStamp int64) *Delivery {
	d := &Delivery{link: l}
	if sentStamp != 0 {
		_ = l.clock.received(sentStamp) // receiving the next heartbeat ends the link
	}
	if timeout <= 0 {
		return d
	}
	if sentStamp != 0 {
		deadline := boundedMillis(sentStamp) + timeout
		d.late = func() time.Duration { return l.clock.latest() - deadline }
	} else {
		deadline := l.clock.elapsed() + timeout
		d.late = func() time.Duration { return l.clock.elapsed() - deadline }
	}
	d.deadline = time.Now().Add(-d.late())
	return d
}

// Late returns nil until the deadline of the operation, by the server's clock, whatever stood still in
// between.
func (d *Delivery) Late() error {
	if _, err := d.link.clock.silentFor(); err != nil {
		return fmt.Errorf("it is not known whether the deadline of the operation has passed: %w", err)
	}
	if d.late == nil {
		return nil
	}
	if late := d.late(); late >= 0 {
		return lateError{late}
	}
	return nil
}

// lateError means that the deadline has passed.
type lateError struct{ by time.Duration }

// Error says by how much.
func (e lateError) Error() string {
	return fmt.Sprintf("the deadline of the operation passed %v ago by the clock of its server, before the request was sent", e.by.Round(time.Millisecond))
}

func (e lateError) Is(target error) bool { return target == context.DeadlineExceeded }

var (
	errLinkEnded   = vedette.Errorf(vedette.Unavailable, "the connection over which the operation came has ended")
	errLinkIsQuiet = vedette.Errorf(vedette.Unavailable, "the agent or its connection to the server is frozen, or was")
)

// Interrupted returns nil while the server cannot have given the operation to another agent: the
// connection exists, and something has arrived over it that the server sent at most two and a half
// heartbeats ago. The server waits for three.
func (d *Delivery) Interrupted() error {
	if d.link.ended() {
		return errLinkEnded
	}
	silent, err := d.link.clock.silentFor()
	if err != nil {
		return err
	}
	if silent > d.link.heartbeatInterval*5/2 {
		return fmt.Errorf("%w: what came last was sent up to %v ago", errLinkIsQuiet, silent.Round(time.Millisecond))
	}
	return nil
}
