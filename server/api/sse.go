package api

import (
	"errors"
	"net/http"
	"time"
)

// sseWriter writes server-sent events.
type sseWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	deadline   time.Time // of all events until the next one is set; zero: each has its own
}

func newSSEWriter(w http.ResponseWriter) *sseWriter {
	return &sseWriter{w: w, controller: http.NewResponseController(w)}
}

// errClientGone ends a stream whose reader does not take what is sent.
var errClientGone = errors.New("the reader of a stream is gone")

// eventTimeout is how long a reader may take for one event, or for a page of what was
// there first. Behind a reader that takes nothing the connection's buffers fill
// first, so this is rarely short.
const eventTimeout = 30 * time.Second

func (e *sseWriter) start() {
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	e.w.WriteHeader(http.StatusOK)
}

// withDeadline bounds the time for all events together that are sent until end is called.
func (e *sseWriter) withDeadline(d time.Duration) (end func()) {
	e.deadline = time.Now().Add(d)
	return func() { e.deadline = time.Time{} }
}

func (e *sseWriter) writeDeadline() time.Time {
	if e.deadline.IsZero() {
		return time.Now().Add(eventTimeout)
	}
	return e.deadline
}

// send writes one event, whose data is a single line of JSON.
func (e *sseWriter) send(name string, data any) error {
	body, err := encode(data)
	if err != nil {
		return err
	}
	return e.write(name, body)
}

// write is send for data that is JSON already, ended by a newline. Within it a
// newline can only stand between values, and would end the event's data.
func (e *sseWriter) write(name string, data []byte) error {
	for i := range data[:len(data)-1] {
		if data[i] == '\n' || data[i] == '\r' {
			data[i] = ' '
		}
	}
	message := append([]byte("event: "+name+"\ndata: "), data...)
	// Where deadlines are not supported a slow reader is waited for, and then
	// the hub ends its subscription.
	_ = e.controller.SetWriteDeadline(e.writeDeadline())
	if _, err := e.w.Write(append(message, '\n')); err != nil {
		return errors.Join(errClientGone, err)
	}
	if err := e.controller.Flush(); err != nil {
		return errors.Join(errClientGone, err)
	}
	return nil
}
