package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
)

// Event is one event of a change stream.
type Event struct {
	Type string // added, modified, deleted, columns, ready, heartbeat, or lagged or error at the end; of newer servers also others
	Data []byte // JSON
}

// idleTimeout is how long a stream may be silent. A server sends a heartbeat every 10
// s, so a longer silence means that the connection is broken, even if TCP has not
// noticed.
const idleTimeout = 45 * time.Second

var errIdleTimeout = errors.New("the server has sent nothing for 45 s")

// ErrLagged is the error of a stream that the server has closed, because it was not read fast enough.
var ErrLagged = errors.New("the server closed the stream, because the reader was too slow")

// Follow is Changes with another stream whenever one breaks. It calls broke with the error of each stream, and ends with what broke
// returns, or with nil when ctx ends.
func (c *Client) Follow(ctx context.Context, q Query, handle func(Event) error, broke func(error) error) error {
	delay := backoff.NewExponentialBackOff()
	delay.InitialInterval, delay.MaxInterval = 500*time.Millisecond, 15*time.Second
	for {
		err := c.Changes(ctx, q, func(e Event) error {
			if e.Type == "ready" {
				delay.Reset()
			}
			return handle(e)
		})
		if ctx.Err() != nil {
			return nil
		}
		if err := broke(err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay.NextBackOff()):
		}
	}
}

// IsPermanent reports whether the same request would fail again.
func IsPermanent(err error) bool {
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.NotFound, vedette.Denied, vedette.UnknownKind, vedette.NotCached:
		return true
	}
	return false
}

// Changes calls handle with the existing objects and then with each change, until the
// stream breaks, ctx ends or handle fails. It never returns nil: after an event of type lagged or error, it returns what that says.
func (c *Client) Changes(ctx context.Context, q Query, handle func(Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	values := q.values()
	values.Del("limit")
	values.Set("initial", "true")
	response, err := c.do(ctx, "/changes", values, "text/event-stream")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	watchdog := time.AfterFunc(idleTimeout, func() { cancel(errIdleTimeout) })
	defer watchdog.Stop()
	err = readEvents(response.Body, func(e Event) error {
		watchdog.Reset(idleTimeout)
		if err := handle(e); err != nil {
			return err
		}
		switch e.Type {
		case "lagged":
			return ErrLagged
		case "error":
			return e.err()
		}
		return nil
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// maxEventLine is the maximum length of a line in bytes. An object has up to 1.5 MiB in
// etcd, and its JSON a few times that.
const maxEventLine = 16 << 20

// readEvents parses server-sent events. It ignores unknown fields, as the format
// requires.
func readEvents(r io.Reader, handle func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEventLine)
	var e Event
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(lines.Bytes()) == 0:
			if e.Type != "" {
				if err := handle(e); err != nil {
					return err
				}
			}
			e = Event{}
		case string(name) == "event":
			e.Type = string(value)
		case string(name) == "data":
			e.Data = append(e.Data, value...)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	return fmt.Errorf("read changes: %w", io.ErrUnexpectedEOF)
}

// err returns the error in an event of type error.
func (e Event) err() error {
	var body errorBody
	if err := json.Unmarshal(e.Data, &body); err != nil {
		return fmt.Errorf("read an error event: %w", err)
	}
	return vedette.Errorf(vedette.ErrorKind(body.Error.Kind), "%s", body.Error.Message)
}
