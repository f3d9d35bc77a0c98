package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// SizeError means that an answer is too large.
type SizeError struct{ Limit int64 }

func (e *SizeError) Error() string {
	if e.Limit >= 1<<20 {
		return fmt.Sprintf("it is larger than the limit of %d MiB", e.Limit>>20)
	}
	return fmt.Sprintf("it is larger than the limit of %d bytes", e.Limit)
}

// TimeError means that an answer took too long.
type TimeError struct {
	what  string
	after time.Duration
}

func (e *TimeError) Error() string { return fmt.Sprintf("%s after %s", e.what, e.after) }

// Timeout is for net.Error.
func (*TimeError) Timeout() bool { return true }

// body is an answer that is bounded in size and time.
type body struct {
	io.Closer
	from      io.Reader
	ctx       context.Context //nolint:containedctx // the context belongs to the request whose body this is
	end       context.CancelCauseFunc
	limit     int64
	remaining int64
	stall     *time.Timer
	stallTime time.Duration
}

// newBody returns a body that calls end when it is closed or has stalled.
func newBody(ctx context.Context, end context.CancelCauseFunc, from io.ReadCloser, limit int64, stall time.Duration) *body {
	b := &body{Closer: from, from: from, ctx: ctx, end: end, limit: limit, remaining: limit, stallTime: stall}
	b.stall = time.AfterFunc(stall, func() { end(&TimeError{"the server sent nothing more", stall}) })
	b.stall.Stop()
	return b
}

// Read fails if the server sends nothing for a while. Time between two calls does not count,
// because it is the reader's.
func (b *body) Read(p []byte) (int, error) {
	if b.remaining == 0 {
		return 0, b.probe()
	}
	b.stall.Reset(b.stallTime)
	defer b.stall.Stop()
	n, err := b.from.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	return n, b.explain(err)
}

// probe reports whether the answer ends at the limit or exceeds it.
func (b *body) probe() error {
	b.stall.Reset(b.stallTime)
	defer b.stall.Stop()
	n, err := io.ReadFull(b.from, make([]byte, 1))
	if n > 0 {
		return &SizeError{b.limit}
	}
	return b.explain(err)
}

// explain replaces the error of a canceled request with the reason why it was canceled.
func (b *body) explain(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if cause := context.Cause(b.ctx); cause != nil {
		return cause
	}
	return err
}

// Close ends the request.
func (b *body) Close() error {
	b.stall.Stop()
	err := b.Closer.Close()
	b.end(nil)
	return err
}
