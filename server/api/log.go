package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/operationjson"
	"github.com/vedette-io/vedette/server/api/operations"
	"github.com/vedette-io/vedette/server/api/parameters"
)

// streamLog streams the log of a pod's containers. If the log breaks off, the connection is
// aborted, so that the client does not mistake a part for the whole log.
func (a *api) streamLog(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, operationjson.LogParameters()...)
	if err != nil {
		return err
	}
	request, err := operationjson.ParseLogs(values)
	if err != nil {
		return err
	}
	op := vedette.Operation{Account: request.Account, Args: request.Args}
	if err := a.authorizeOperation(r, &op); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		writeLogHeader(w)
		return nil
	}
	out := a.Dispatch.Execute(r.Context(), op)
	if out.Stream == nil {
		return a.writeLogError(w, out)
	}
	defer out.Stream.Close()
	// Read blocks until the container writes. Closing the stream unblocks it if the client
	// leaves.
	defer context.AfterFunc(r.Context(), func() { _ = out.Stream.Close() })()
	return copyLog(w, out.Stream, request.Args.Follow)
}

// writeLogError writes why there is no log, with the cluster's status.
func (a *api) writeLogError(w http.ResponseWriter, out vedette.Outcome) error {
	if out.State == vedette.Done {
		return errors.New("the outcome of a logs operation has no stream")
	}
	status := operations.Outcome{State: out.State, Status: out.Status}.HTTPStatus()
	if out.Message == "" {
		out.Message = "the cluster returned no log and no message; reason: " + out.Reason
	}
	writeError(w, status, errorKindForStatus(status), out.Message)
	return nil
}

func errorKindForStatus(status int) string {
	kind := vedette.Unavailable
	switch {
	case status == http.StatusNotFound:
		kind = vedette.NotFound
	case status == http.StatusConflict:
		kind = vedette.Conflict
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		kind = vedette.Denied
	case status < http.StatusInternalServerError:
		kind = vedette.Invalid
	}
	return string(kind)
}

func writeLogHeader(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff") // the container controls the content
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would buffer lines
	w.WriteHeader(http.StatusOK)
}

// copyLog copies a log to the client. With follow, the response starts before the first line,
// which may take hours to appear.
//
// A client that reads nothing for logWriteTimeout is disconnected, because an agent reads only
// a few logs at once. A silent log stays open.
func copyLog(w http.ResponseWriter, log io.Reader, follow bool) error {
	controller := http.NewResponseController(w)
	started := false
	start := func() {
		if !started {
			started = true
			writeLogHeader(w)
		}
	}
	if follow {
		start()
		if err := writeWithTimeout(controller, logWriteTimeout, controller.Flush); err != nil {
			return nil // the client is gone
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			start()
			if err := writeWithTimeout(controller, logWriteTimeout, func() error { return writeAndFlush(w, controller, buf[:n]) }); err != nil {
				return nil // the client is gone or stopped reading
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			start()
			return nil
		case err != nil && !started:
			return vedette.Errorf(vedette.Unavailable, "the log ended before its first byte: %w", err)
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// logWriteTimeout bounds writing a piece of 32 KiB.
const logWriteTimeout = time.Minute

// writeWithTimeout makes a write fail if the client does not read in time. It blocks if the
// connection does not support deadlines.
func writeWithTimeout(c *http.ResponseController, timeout time.Duration, write func() error) error {
	_ = c.SetWriteDeadline(time.Now().Add(timeout))
	defer func() { _ = c.SetWriteDeadline(time.Time{}) }() // on HTTP/2 it would end silent streams
	return write()
}

func writeAndFlush(w io.Writer, c *http.ResponseController, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return c.Flush()
}
