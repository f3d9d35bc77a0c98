package watch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// timeouts bound how long one request waits for the API server. Time that the
// reader of the answer takes for itself does not count.
type timeouts struct {
	header   time.Duration // for the head of the answer
	progress time.Duration // for the next bytes of the body
	// bytesPerSecond is how many bytes earn back a second of body, so that an answer that
	// trickles in ends too. Zero: each byte earns back all of it, as in a watch.
	bytesPerSecond int
	permit         *snapshotPermit // that the request is made in; nil for none
}

// stallError says that an API server was silent for too long.
type stallError struct {
	during string
	limit  time.Duration
	big    bool // it was not silent: an object took too long
}

// Error says where the API server stopped.
func (e *stallError) Error() string {
	if e.big {
		return fmt.Sprintf("%s after %s", e.during, e.limit)
	}
	return fmt.Sprintf("%s: nothing, or next to nothing, came for %s", e.during, e.limit)
}

// Timeout makes it an error of time for whoever asks.
func (e *stallError) Timeout() bool { return true }

// send makes a request and bounds the waits for its answer. The context that do
// gets ends with them. The caller closes the body.
func (l timeouts) send(ctx context.Context, do func(context.Context) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	headerTimer := time.AfterFunc(l.header, func() { cancel(&stallError{during: "the answer did not begin", limit: l.header}) })
	l.permit.startWait()
	resp, err := do(ctx)
	headerTimer.Stop()
	if turnErr := l.permit.endWait(ctx, 0); err == nil && turnErr != nil {
		resp.Body.Close()
		err = turnErr
	}
	if err != nil {
		err = stallCause(ctx, err)
		cancel(nil)
		return nil, err
	}
	b := &timeoutBody{ReadCloser: resp.Body, timeouts: l, ctx: ctx, cancel: cancel, remaining: l.progress}
	b.timer = time.AfterFunc(l.progress, func() { cancel(&stallError{during: "the answer stopped in the middle", limit: l.progress}) })
	b.timer.Stop()
	resp.Body = b
	return resp, nil
}

// stallCause returns the stall that ended ctx, or else err.
func stallCause(ctx context.Context, err error) error {
	if stall, ok := context.Cause(ctx).(*stallError); ok {
		return stall
	}
	return err
}

// timeoutBody is a body that ends, with a stallError, when the API server is
// silent for too long.
type timeoutBody struct {
	io.ReadCloser
	timeouts
	ctx       context.Context
	cancel    context.CancelCauseFunc
	timer     *time.Timer   // runs during Read
	remaining time.Duration // that reads may still wait
}

// Read reads what comes within the limits.
func (b *timeoutBody) Read(p []byte) (int, error) {
	began := time.Now()
	b.timer.Reset(b.remaining)
	b.permit.startWait()
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.remaining = b.extend(b.remaining-time.Since(began), n)
	if turnErr := b.permit.endWait(b.ctx, n); turnErr != nil && err == nil {
		err = turnErr
	}
	if err != nil && err != io.EOF {
		err = stallCause(b.ctx, err)
	}
	return n, err
}

// extend adds to the time that is left what n bytes are worth.
func (b *timeoutBody) extend(remaining time.Duration, n int) time.Duration {
	switch {
	case n <= 0:
		return remaining
	case b.bytesPerSecond == 0:
		return b.progress
	}
	return min(b.progress, remaining+time.Duration(n)*time.Second/time.Duration(b.bytesPerSecond))
}

// Close ends the request.
func (b *timeoutBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// minBytesPerSecond is what an answer must come at, in bytes per second, after a pause
// of Options.Pause altogether.
const minBytesPerSecond = 4 << 10

// timeouts returns those of requests that end soon.
func (c *Cluster) timeouts() timeouts {
	return timeouts{header: c.opts.HeaderTimeout, progress: c.opts.ProgressTimeout, bytesPerSecond: minBytesPerSecond}
}
