package middleware

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bytesize"
	"github.com/vedette-io/vedette/server/membudget"
	"github.com/vedette-io/vedette/server/readlimit"
)

const (
	// bodyBytes limits the memory of all request bodies together, in a process with enough memory. Each handler
	// limits its own, to at most 32 MiB, but many callers at once could fill the memory. One source may have half.
	bodyBytes = 128 << 20
	// bodyCopies is how often the bytes of a body are in memory when its end has arrived: in the pieces that
	// were read, and in one.
	bodyCopies = 2
	// bodyPiece is what a body pays in advance: at its begin, and whenever it has arrived. A body that
	// announces no more is small.
	bodyPiece = 64 << 10
	// smallBodyBytes is the memory of small bodies, which most operations have. They do not wait until
	// large ones have arrived, which takes as long as their senders want.
	smallBodyBytes = 16 << 20
)

// bodyLimiter shares memory among bodies.
type bodyLimiter struct {
	small, large *readlimit.Limiter
	largest      int64 // bytes of one body, where there is too little memory for what handlers accept
}

func newBodyLimiter(available int64) bodyLimiter {
	bytes, largest := membudget.Fit(bodyBytes, available), int64(math.MaxInt64)
	if bytes < bodyBytes {
		largest = bytes / 2 / bodyCopies // what the share of a source suffices for
	}
	return bodyLimiter{small: readlimit.NewUniform(readlimit.Config{Bytes: smallBodyBytes, UserShare: smallBodyBytes / 2}),
		large: readlimit.NewUniform(readlimit.Config{Bytes: bytes, UserShare: bytes / 2}), largest: largest}
}

// acquire waits for the first piece of a body.
func (l bodyLimiter) acquire(r *http.Request) (grant *readlimit.Grant, piece int64, err error) {
	limiter, piece := l.large, int64(bodyPiece)
	if r.ContentLength > 0 && r.ContentLength <= bodyPiece {
		limiter, piece = l.small, r.ContentLength // nothing more arrives
	}
	grant, err = limiter.AcquireGrant(r.Context(), readlimit.CallerOf(r), bodyCopies*piece)
	return grant, piece, err
}

// LimitBodies reserves memory for the body of a request while it arrives, until the request has ended, in a process that may
// take so many bytes; 0 means that nobody knows. A body that was announced and does not arrive costs next to nothing. Requests
// wait for each other, and are rejected if that takes too long.
func LimitBodies(next http.Handler, available int64) http.Handler {
	limiter := newBodyLimiter(available)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength > limiter.largest {
			rejectBody(w, r, limiter.tooLarge())
			return
		}
		grant, piece, err := limiter.acquire(r)
		if err != nil {
			rejectBody(w, r, err)
			return
		}
		defer grant.Release()
		body := &paidBody{ReadCloser: r.Body, ctx: r.Context(), limiter: limiter, grant: grant, paid: piece, left: limiter.largest - piece}
		paid := *r
		paid.Body = body
		next.ServeHTTP(&paidBodyWriter{ResponseWriter: w, request: r, body: body}, &paid)
	})
}

// tooLarge returns the error for a body that is larger than largest.
func (l bodyLimiter) tooLarge() error {
	return vedette.Errorf(vedette.Invalid, "it is larger than %s, which is what this server has memory for: send less at a time, or give the server 1.5 GiB",
		bytesize.Text(l.largest))
}

func rejectBody(w http.ResponseWriter, r *http.Request, err error) {
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding"} { // of a response that this one replaces
		h.Del(name)
	}
	if vedette.KindOf(err) == vedette.Invalid {
		Reject(w, r, http.StatusRequestEntityTooLarge, vedette.Invalid, fmt.Sprintf("receive the body: %v", err))
		return
	}
	h.Set("Retry-After", "1")
	Reject(w, r, http.StatusServiceUnavailable, vedette.Unavailable, fmt.Sprintf("receive the body: %v", err))
}

// paidBody is a body that reads only what memory was granted for.
type paidBody struct {
	io.ReadCloser
	ctx     context.Context // of the request
	limiter bodyLimiter
	grant   *readlimit.Grant
	paid    int64 // bytes that may still be read
	left    int64 // bytes that may still be paid for

	mu  sync.Mutex
	err error // why no memory was granted
}

func (b *paidBody) Read(p []byte) (int, error) {
	if b.paid == 0 {
		if b.left < bodyPiece {
			err := b.limiter.tooLarge()
			b.reject(err)
			return 0, err
		}
		if err := b.grant.Grow(b.ctx, bodyCopies*bodyPiece); err != nil {
			b.reject(err)
			return 0, err
		}
		b.paid, b.left = bodyPiece, b.left-bodyPiece
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.paid)])
	b.paid -= int64(n)
	return n, err
}

func (b *paidBody) reject(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *paidBody) rejection() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// paidBodyWriter replaces the response to a request whose body was rejected: handlers take that for an
// error of the client.
type paidBodyWriter struct {
	http.ResponseWriter
	request  *http.Request
	body     *paidBody
	begun    bool
	replaced bool
}

// Unwrap is called by http.ResponseController.
func (w *paidBodyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *paidBodyWriter) WriteHeader(status int) {
	if !w.begun && status >= http.StatusBadRequest {
		if err := w.body.rejection(); err != nil {
			w.replaced = true
			rejectBody(w.ResponseWriter, w.request, err)
		}
	}
	w.begun = true
	if !w.replaced {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *paidBodyWriter) Write(p []byte) (int, error) {
	w.begun = true
	if w.replaced {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
