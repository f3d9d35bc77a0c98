package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

var logParameters = []string{"account", "namespace", "pod", "container", "allContainers", "previous", "follow", "tailLines", "since", "sinceTime", "timestamps"}

// streamLog answers with what a pod's containers wrote, as it comes. A log that
// breaks off ends in a broken answer, so that nobody takes it for the whole.
func (a *api) streamLog(w http.ResponseWriter, r *http.Request) error {
	values, err := parseParameters(r, logParameters...)
	if err != nil {
		return err
	}
	op, err := parseLogs(values)
	if err != nil {
		return err
	}
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
	// Reading waits for the container to write; a reader that leaves ends it.
	defer context.AfterFunc(r.Context(), func() { _ = out.Stream.Close() })()
	return copyLog(w, out.Stream, op.Args.(vedette.LogsArgs).Follow)
}

// writeLogError says why there is no log, with the status that the cluster gave.
func (a *api) writeLogError(w http.ResponseWriter, out vedette.Outcome) error {
	if out.State == vedette.Done {
		return errors.New("an outcome of logs has no log")
	}
	status := outcomeView{State: out.State, Status: out.Status}.httpStatus()
	if out.Message == "" {
		out.Message = "the cluster gave no log and did not say why: " + out.Reason
	}
	writeError(w, status, errorKindForStatus(status), out.Message)
	return nil
}

// errorKindForStatus sorts the answers of clusters.
func errorKindForStatus(status int) string {
	for kind, s := range httpStatusByKind {
		if s == status {
			return string(kind)
		}
	}
	switch {
	case status == http.StatusUnauthorized:
		return string(vedette.Denied)
	case status < 500:
		return string(vedette.Invalid)
	}
	return string(vedette.Unavailable)
}

func writeLogHeader(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff") // whoever runs a container decides what it says
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold lines back
	w.WriteHeader(http.StatusOK)
}

// copyLog sends a log. One that is followed is open before it says anything, which
// may take hours.
//
// A reader that takes nothing for logPatience loses its log: agents read few logs at
// once. A log that is silent stays open.
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
			return nil // the reader is gone
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			start()
			if err := writeWithTimeout(controller, logWriteTimeout, func() error { return writeAndFlush(w, controller, buf[:n]) }); err != nil {
				return nil // the reader is gone, or has stopped
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			start()
			return nil
		case err != nil && !started:
			return vedette.Errorf(vedette.Unavailable, "the log broke off before its first byte: %w", err)
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// logWriteTimeout is how long a reader of a log may take for a piece of 32 KiB.
const logWriteTimeout = time.Minute

// writeWithTimeout has a write fail that the reader does not take in time. Where a
// connection knows no deadlines, it waits.
func writeWithTimeout(c *http.ResponseController, timeout time.Duration, write func() error) error {
	_ = c.SetWriteDeadline(time.Now().Add(timeout))
	defer func() { _ = c.SetWriteDeadline(time.Time{}) }() // which would end what is silent on HTTP/2
	return write()
}

func writeAndFlush(w io.Writer, c *http.ResponseController, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return c.Flush()
}

func parseLogs(values url.Values) (vedette.Operation, error) {
	var a vedette.LogsArgs
	var account, since, sinceTime, tail string
	for name, field := range map[string]*string{"account": &account, "namespace": &a.Namespace, "pod": &a.Name, "container": &a.Container,
		"since": &since, "sinceTime": &sinceTime, "tailLines": &tail} {
		var err error
		if *field, err = singleValue(values, name); err != nil {
			return vedette.Operation{}, err
		}
	}
	for name, field := range map[string]*bool{"allContainers": &a.AllContainers, "previous": &a.Previous, "follow": &a.Follow, "timestamps": &a.Timestamps} {
		value, err := enumValue(values, name, "true", "false")
		if err != nil {
			return vedette.Operation{}, err
		}
		*field = value == "true"
	}
	switch {
	case account == "":
		return vedette.Operation{}, vedette.Errorf(vedette.Invalid, "the parameter account is missing: a log is one account's")
	case a.Name == "":
		return vedette.Operation{}, vedette.Errorf(vedette.Invalid, "the parameter pod is missing: a log is one pod's")
	case a.Container != "" && a.AllContainers:
		return vedette.Operation{}, vedette.Errorf(vedette.Invalid, "container names one and allContainers means all: leave one out")
	case since != "" && sinceTime != "":
		return vedette.Operation{}, vedette.Errorf(vedette.Invalid, "since and sinceTime both say where the log begins: leave one out")
	}
	var err error
	if a.TailLines, err = parseTailLines(tail); err != nil {
		return vedette.Operation{}, err
	}
	if a.SinceSeconds, err = parseSinceSeconds(since); err != nil {
		return vedette.Operation{}, err
	}
	a.SinceTime, err = parseSinceTime(sinceTime)
	return vedette.Operation{Account: vedette.AccountName(account), Args: a}, err
}

func parseTailLines(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, vedette.Errorf(vedette.Invalid, "tailLines is %.40q and must be a number of lines", text)
	}
	return &n, nil
}

// parseSinceSeconds rounds up: more is better than less of a log.
func parseSinceSeconds(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return nil, vedette.Errorf(vedette.Invalid, "since is %.40q and must be a duration such as 90s or 2h", text)
	}
	seconds := int64((d + time.Second - 1) / time.Second)
	return &seconds, nil
}

func parseSinceTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, vedette.Errorf(vedette.Invalid, "sinceTime is %.40q and must be a time such as 2026-01-31T12:00:00Z", text)
	}
	return t, nil
}
