package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

// Control is what a running operation asks its Executor for.
type Control struct {
	// Memory holds the memory of the operation. The handler lets it grow before it reads more. Nil
	// means no limit.
	Memory *fair.SplitGrant

	executor  *Executor
	op        vedette.Operation
	abandoned chan struct{} // closed by abandon
	stream    *fair.Grant   // of a log; nil for none

	mu          sync.Mutex
	worker      *fair.Grant
	delivery    Delivery      // the last one
	redelivered chan struct{} // closed and replaced by the next delivery
	isAbandoned bool
}

// ErrCallerLeft is the cause of the end of a wait that no caller needs any more.
var ErrCallerLeft = errors.New("its caller has left")

// interruptionCheck is how often an operation looks whether its connection works again.
const interruptionCheck = time.Second

// MayChange waits until the operation may change something in its cluster, until ctx ends. It fails at the
// operation's deadline. An operation that can be repeated waits while its connection is lost, or stands
// still, because the server may have given it to another agent, and others may have changed the result
// since. It continues if the server sends it again, or the connection turns out to work.
func (c *Control) MayChange(ctx context.Context) error {
	for {
		delivery, redelivered := c.currentDelivery()
		if delivery == nil {
			return nil
		}
		if err := delivery.Late(); err != nil {
			return err
		}
		if !c.op.Idempotent() {
			return nil // no other agent gets it
		}
		interruption := delivery.Interrupted()
		if interruption == nil {
			return nil
		}
		select {
		case <-redelivered:
		case <-time.After(interruptionCheck):
		case <-ctx.Done():
			return fmt.Errorf("the server did not send the operation again: %w", interruption)
		}
	}
}

func (c *Control) late() error {
	delivery, _ := c.currentDelivery()
	if delivery == nil {
		return nil
	}
	return delivery.Late()
}

func (c *Control) currentDelivery() (Delivery, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delivery, c.redelivered
}

func (c *Control) redeliver(d Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delivery = d
	close(c.redelivered)
	c.redelivered = make(chan struct{})
}

// Wait runs the last part of an operation, which only waits for the cluster. It needs no worker, if not
// too many operations wait already. Its context also ends when the caller has left, with ErrCallerLeft.
func (c *Control) Wait(ctx context.Context, wait func(context.Context)) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.abandoned:
			cancel(ErrCallerLeft)
		case <-ctx.Done():
		}
	}()
	if permit := c.executor.waits.TryAcquire(string(c.op.Account), 1); permit != nil {
		defer permit.Release()
		c.releaseWorker()
	}
	wait(ctx)
}

func (c *Control) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isAbandoned {
		c.isAbandoned = true
		close(c.abandoned)
	}
}

func (c *Control) setWorker(worker *fair.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worker = worker
}

func (c *Control) releaseWorker() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worker.Release()
}

// releasingObjects releases the worker of an operation when its objects are closed.
type releasingObjects struct {
	vedette.ObjectReader
	release func()
}

func (r *releasingObjects) Close() {
	r.ObjectReader.Close()
	r.release()
}
