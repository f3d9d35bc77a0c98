package middleware

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// How fast the other side must be. A line at these rates takes hours for what is
// large, but it gets there; what is slower only keeps memory and a connection.
const (
	idleTimeout  = 30 * time.Second // without a byte of a body, and before rates count
	minReadRate  = 1 << 10          // bytes of a body per second
	minWriteRate = 64 << 10         // bytes of an answer per second
)

// ErrSlowBody is the error of reading a body that comes too slowly.
var ErrSlowBody = errors.New("it came too slowly: 1 KiB a second is the least, and 30 s without a byte the most")

// Deadlines ends requests whose bodies come too slowly, with ErrSlowBody to whoever
// reads them, and breaks the connection of those who take their answers too slowly.
// A handler that begins to write should have all that it writes. One that sends as
// things happen sets write deadlines of its own, and is left alone.
func Deadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{}) // the one of the connection's last request may stand
		if r.Body != nil && r.Body != http.NoBody {
			b := &deadlineBody{ReadCloser: r.Body, control: control, start: time.Now()}
			b.extend()
			r.Body = b
		}
		next.ServeHTTP(&deadlineWriter{ResponseWriter: w, control: control}, r)
	})
}

// deadlineBody is a request's body with a deadline that progress moves.
type deadlineBody struct {
	io.ReadCloser
	control *http.ResponseController
	start   time.Time
	read    int64
}

// Read implements io.Reader.
func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case err == nil:
		b.extend()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSlowBody
	default:
		// From here on the server reads, to see whether the caller leaves: that must
		// not end at a deadline.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *deadlineBody) extend() {
	deadline := b.start.Add(idleTimeout + time.Duration(b.read)*time.Second/minReadRate)
	if next := time.Now().Add(idleTimeout); next.Before(deadline) {
		deadline = next
	}
	_ = b.control.SetReadDeadline(deadline) // where deadlines are not supported there are none
}

// deadlineWriter is an answer with a deadline that grows with what is written.
type deadlineWriter struct {
	http.ResponseWriter
	control        *http.ResponseController
	start          time.Time // of writing
	written        int64
	hasOwnDeadline bool // the handler sets deadlines
}

// Unwrap is for http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetWriteDeadline is for http.ResponseController.
func (w *deadlineWriter) SetWriteDeadline(t time.Time) error {
	w.hasOwnDeadline = true
	return w.control.SetWriteDeadline(t)
}

// Write implements io.Writer.
func (w *deadlineWriter) Write(p []byte) (int, error) {
	if !w.hasOwnDeadline {
		if w.start.IsZero() {
			w.start = time.Now()
		}
		w.written += int64(len(p))
		_ = w.control.SetWriteDeadline(w.start.Add(idleTimeout + time.Duration(w.written)*time.Second/minWriteRate))
	}
	return w.ResponseWriter.Write(p)
}
