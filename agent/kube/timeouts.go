package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Timeouts bound how long one request waits for the API server. The time that the
// reader of the response needs does not count.
type Timeouts struct {
	Header   time.Duration // for the response header
	Progress time.Duration // for the next bytes of the body
	// BytesPerSecond is how many bytes of the body earn back one second of Progress, so
	// that a response which only trickles ends too. If it is zero, each byte earns back
	// all of Progress, as a watch needs it.
	BytesPerSecond int
	Waiter         Waiter // nil for none
}

// Waiter learns when a request waits for the API server.
type Waiter interface {
	// StartWait notes that the request waits from now on.
	StartWait()
	// EndWait notes that the wait is over and that n bytes of the body arrived. It may
	// block. An error fails the request.
	EndWait(ctx context.Context, n int) error
}

// minBytesPerSecond is the least rate of a response, in bytes per second, once all of
// its pauses together last Options.ProgressTimeout.
const minBytesPerSecond = 4 << 10

// Timeouts returns the timeouts of requests whose response ends soon.
func (c *Cluster) Timeouts() Timeouts {
	return Timeouts{Header: c.opts.HeaderTimeout, Progress: c.opts.ProgressTimeout, BytesPerSecond: minBytesPerSecond}
}

// StallError reports that an API server was silent for too long.
type StallError struct {
	Phase string // what happened instead, for example "the response did not begin"
	Limit time.Duration
	// LargeObject reports that the API server was not silent: one object took too long.
	LargeObject bool
}

// Error describes where the API server stopped.
func (e *StallError) Error() string {
	if e.LargeObject {
		return fmt.Sprintf("%s after %s", e.Phase, e.Limit)
	}
	return fmt.Sprintf("%s: almost no data arrived for %s", e.Phase, e.Limit)
}

// Timeout reports true, as the errors of package net do.
func (e *StallError) Timeout() bool { return true }

// send sends a request by do and bounds the waits for its response. The context that
// do gets ends with them. The caller must close the body.
func (t Timeouts) send(ctx context.Context, do func(context.Context) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	headerTimer := time.AfterFunc(t.Header, func() { cancel(&StallError{Phase: "the response did not begin", Limit: t.Header}) })
	t.startWait()
	resp, err := do(ctx)
	headerTimer.Stop()
	if waitErr := t.endWait(ctx, 0); err == nil && waitErr != nil {
		resp.Body.Close()
		err = waitErr
	}
	if err != nil {
		err = stallCause(ctx, err)
		cancel(nil)
		return nil, err
	}
	b := &timeoutBody{ReadCloser: resp.Body, timeouts: t, ctx: ctx, cancel: cancel, remaining: t.Progress}
	b.timer = time.AfterFunc(t.Progress, func() { cancel(&StallError{Phase: "the response stopped in the middle", Limit: t.Progress}) })
	b.timer.Stop()
	resp.Body = b
	return resp, nil
}

func (t Timeouts) startWait() {
	if t.Waiter != nil {
		t.Waiter.StartWait()
	}
}

func (t Timeouts) endWait(ctx context.Context, n int) error {
	if t.Waiter == nil {
		return nil
	}
	return t.Waiter.EndWait(ctx, n)
}

// stallCause returns the stall that ended ctx, or else err.
func stallCause(ctx context.Context, err error) error {
	var stall *StallError
	if errors.As(context.Cause(ctx), &stall) {
		return stall
	}
	return err
}

// timeoutBody is a response body that fails with a StallError if the API server is
// silent for too long.
type timeoutBody struct {
	io.ReadCloser
	timeouts  Timeouts
	ctx       context.Context
	cancel    context.CancelCauseFunc
	timer     *time.Timer   // runs during Read
	remaining time.Duration // that reads may still wait
}

func (b *timeoutBody) Read(p []byte) (int, error) {
	began := time.Now()
	b.timer.Reset(b.remaining)
	b.timeouts.startWait()
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.remaining = b.timeouts.extend(b.remaining-time.Since(began), n)
	if waitErr := b.timeouts.endWait(b.ctx, n); waitErr != nil && err == nil {
		err = waitErr
	}
	if err != nil && err != io.EOF {
		err = stallCause(b.ctx, err)
	}
	return n, err
}

// extend adds to the remaining time what n bytes earn.
func (t Timeouts) extend(remaining time.Duration, n int) time.Duration {
	switch {
	case n <= 0:
		return remaining
	case t.BytesPerSecond == 0:
		return t.Progress
	}
	return min(t.Progress, remaining+time.Duration(n)*time.Second/time.Duration(t.BytesPerSecond))
}

// Close ends the request.
func (b *timeoutBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
