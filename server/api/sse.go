package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/vedette-io/vedette/server/rest"
)

// sseWriter writes server-sent events.
type sseWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	deadline   time.Time // for several events; zero: each event has its own
}

func newSSEWriter(w http.ResponseWriter) *sseWriter {
	return &sseWriter{w: w, controller: http.NewResponseController(w)}
}

// errClientGone means that the client does not read the stream any more.
var errClientGone = errors.New("the client of the stream is gone")

// eventTimeout bounds writing one event or one page of existing objects. It is rarely too
// short, because the buffers of the connection fill first.
const eventTimeout = 30 * time.Second

func (e *sseWriter) start() {
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would buffer events
	e.w.WriteHeader(http.StatusOK)
}

// withDeadline sets one deadline for all events until end is called.
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

// send writes one event with data as a single line of JSON.
func (e *sseWriter) send(name string, data any) error {
	body, err := rest.Encode(data)
	if err != nil {
		return err
	}
	return e.write(name, body)
}

// write is like send for data that is JSON already and ends with a newline. It replaces other
// newlines, because they would end the event. In JSON they can only be between tokens.
func (e *sseWriter) write(name string, data []byte) error {
	for i := range data[:len(data)-1] {
		if data[i] == '\n' || data[i] == '\r' {
			data[i] = ' '
		}
	}
	message := append([]byte("event: "+name+"\ndata: "), data...)
	// If deadlines are not supported, writing to a slow client blocks until the hub ends the
	// subscription.
	_ = e.controller.SetWriteDeadline(e.writeDeadline())
	if _, err := e.w.Write(append(message, '\n')); err != nil {
		return errors.Join(errClientGone, err)
	}
	if err := e.controller.Flush(); err != nil {
		return errors.Join(errClientGone, err)
	}
	return nil
}
