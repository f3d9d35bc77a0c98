package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/logs"
)

// logs opens the logs of a pod's containers. The deadline applies to opening. Reading may take until
// ctx ends.
func (r *run) logs(ctx context.Context, deadline time.Time, a vedette.LogsArgs) result {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(time.Until(deadline), func() { cancel(context.DeadlineExceeded) })
	stream, err := logs.Open(ctx, r.Sender, a)
	if !timer.Stop() && err == nil {
		stream.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = fmt.Errorf("open the log: %w (%w)", err, context.DeadlineExceeded)
		}
		cancel(nil)
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Stream: &cancelingReadCloser{stream, func() { cancel(nil) }}}}
}

// cancelingReadCloser cancels the requests behind a stream when it is closed.
type cancelingReadCloser struct {
	io.ReadCloser
	cancel func()
}

// Close closes the stream and cancels the requests behind it.
func (c *cancelingReadCloser) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
