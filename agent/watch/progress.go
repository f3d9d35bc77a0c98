package watch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// limits bound how long one request waits for the API server. Time that the
// reader of the answer takes for itself does not count.
type limits struct {
	head time.Duration // for the head of the answer
	body time.Duration // for the next bytes of the body
	// rate is how many bytes earn back a second of body, so that an answer that
	// trickles in ends too. Zero: each byte earns back all of it, as in a watch.
	rate int
	turn *turn // that the request is made in; nil for none
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
func (l limits) send(ctx context.Context, do func(context.Context) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	head := time.AfterFunc(l.head, func() { cancel(&stallError{during: "the answer did not begin", limit: l.head}) })
	l.turn.wait()
	resp, err := do(ctx)
	head.Stop()
	if turnErr := l.turn.resume(ctx, 0); err == nil && turnErr != nil {
		resp.Body.Close()
		err = turnErr
	}
	if err != nil {
		err = stallOf(ctx, err)
		cancel(nil)
		return nil, err
	}
	b := &boundBody{ReadCloser: resp.Body, limits: l, ctx: ctx, cancel: cancel, left: l.body}
	b.timer = time.AfterFunc(l.body, func() { cancel(&stallError{during: "the answer stopped in the middle", limit: l.body}) })
	b.timer.Stop()
	resp.Body = b
	return resp, nil
}

// stallOf returns the stall that ended ctx, or else err.
func stallOf(ctx context.Context, err error) error {
	if stall, ok := context.Cause(ctx).(*stallError); ok {
		return stall
	}
	return err
}

// boundBody is a body that ends, with a stallError, when the API server is
// silent for too long.
type boundBody struct {
	io.ReadCloser
	limits
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer   // runs during Read
	left   time.Duration // that reads may still wait
}

// Read reads what comes within the limits.
func (b *boundBody) Read(p []byte) (int, error) {
	began := time.Now()
	b.timer.Reset(b.left)
	b.turn.wait()
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.left = b.earned(b.left-time.Since(began), n)
	if turnErr := b.turn.resume(b.ctx, n); turnErr != nil && err == nil {
		err = turnErr
	}
	if err != nil && err != io.EOF {
		err = stallOf(b.ctx, err)
	}
	return n, err
}

// earned adds to the time that is left what n bytes are worth.
func (b *boundBody) earned(left time.Duration, n int) time.Duration {
	switch {
	case n <= 0:
		return left
	case b.rate == 0:
		return b.body
	}
	return min(b.body, left+time.Duration(n)*time.Second/time.Duration(b.rate))
}

// Close ends the request.
func (b *boundBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// leastRate is what an answer must come at, in bytes per second, after a pause
// of Options.Pause altogether.
const leastRate = 4 << 10

// limits returns those of requests that end soon.
func (c *Cluster) limits() limits {
	return limits{head: c.opts.Head, body: c.opts.Pause, rate: leastRate}
}
