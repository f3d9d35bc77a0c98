package middleware

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// Limits for slow clients. A client at these rates needs minutes for a large body but completes. A
// slower one only occupies memory and a connection.
const (
	idleTimeout  = 30 * time.Second // maximum time without a byte of a body, and before rates apply
	minReadRate  = 32 << 10         // bytes of a request body per second
	minWriteRate = 64 << 10         // bytes of a response per second
)

// ErrSlowBody is the error of reading a request body that arrives too slowly.
var ErrSlowBody = errors.New("the body arrived too slowly: the minimum is 32 KiB per second, without a gap of more than 30 s")

// Deadlines ends requests whose bodies arrive too slowly, by failing reads with ErrSlowBody, and
// closes connections whose clients read responses too slowly. It expects a handler that begins to
// write to have the whole response ready. Handlers that stream must set their own write deadlines,
// which Deadlines then leaves alone.
func Deadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{}) // the deadline of the connection's last request may still be set
		if r.Body != nil && r.Body != http.NoBody {
			b := &deadlineBody{ReadCloser: r.Body, control: control, start: time.Now()}
			b.extend()
			r.Body = b
		}
		next.ServeHTTP(&deadlineWriter{ResponseWriter: w, control: control}, r)
	})
}

// deadlineBody is a request body whose read deadline moves with progress.
type deadlineBody struct {
	io.ReadCloser
	control *http.ResponseController
	start   time.Time
	read    int64
}

func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case err == nil:
		b.extend()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSlowBody
	default:
		// From here on net/http reads from the connection to detect that the client leaves, which
		// must not end at a deadline.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *deadlineBody) extend() {
	deadline := b.start.Add(idleTimeout + time.Duration(b.read)*time.Second/minReadRate)
	if next := time.Now().Add(idleTimeout); next.Before(deadline) {
		deadline = next
	}
	_ = b.control.SetReadDeadline(deadline) // an error means that deadlines are not supported
}

// deadlineWriter is a response whose write deadline grows with the bytes written.
type deadlineWriter struct {
	http.ResponseWriter
	control        *http.ResponseController
	start          time.Time // of the response
	written        int64
	hasOwnDeadline bool // whether the handler sets deadlines itself
}

// Unwrap is called by http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetWriteDeadline is called by http.ResponseController.
func (w *deadlineWriter) SetWriteDeadline(t time.Time) error {
	w.hasOwnDeadline = true
	return w.control.SetWriteDeadline(t)
}

// Write extends the deadline by the time that b may take.
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
