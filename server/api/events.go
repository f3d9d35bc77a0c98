package api

import (
	"errors"
	"net/http"
	"time"
)

// events writes server-sent events.
type events struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	deadline   time.Time // of all events until the next one is set; zero: each has its own
}

func newEvents(w http.ResponseWriter) *events {
	return &events{w: w, controller: http.NewResponseController(w)}
}

// errGone ends a stream whose reader does not take what is sent.
var errGone = errors.New("the reader of a stream is gone")

// patience is how long a reader may take for one event, or for a page of what was
// there first. Behind a reader that takes nothing the connection's buffers fill
// first, so this is rarely short.
const patience = 30 * time.Second

func (e *events) open() {
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	e.w.WriteHeader(http.StatusOK)
}

// within bounds the time for all events together that are sent until end is called.
func (e *events) within(d time.Duration) (end func()) {
	e.deadline = time.Now().Add(d)
	return func() { e.deadline = time.Time{} }
}

func (e *events) until() time.Time {
	if e.deadline.IsZero() {
		return time.Now().Add(patience)
	}
	return e.deadline
}

// send writes one event, whose data is a single line of JSON.
func (e *events) send(name string, data any) error {
	body, err := encode(data)
	if err != nil {
		return err
	}
	return e.write(name, body)
}

// write is send for data that is JSON already, ended by a newline. Within it a
// newline can only stand between values, and would end the event's data.
func (e *events) write(name string, data []byte) error {
	for i := range data[:len(data)-1] {
		if data[i] == '\n' || data[i] == '\r' {
			data[i] = ' '
		}
	}
	message := append([]byte("event: "+name+"\ndata: "), data...)
	// Where deadlines are not supported a slow reader is waited for, and then
	// the hub ends its subscription.
	_ = e.controller.SetWriteDeadline(e.until())
	if _, err := e.w.Write(append(message, '\n')); err != nil {
		return errors.Join(errGone, err)
	}
	if err := e.controller.Flush(); err != nil {
		return errors.Join(errGone, err)
	}
	return nil
}
