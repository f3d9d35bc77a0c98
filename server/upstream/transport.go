package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/upstream/masking"
)

// Why a request to the upstream Clouddriver failed, as health and the header of merged answers name
// it. A status is "status-502" and the like.
const (
	reasonTimeout     = "timeout"
	reasonUnreachable = "unreachable"
	reasonCutOff      = "cut-off"        // the answer ended too early
	reasonInvalid     = "invalid-answer" // the answer is not the JSON that it should be
	reasonTooLarge    = "too-large"      // one answer is larger than the memory for merging
	reasonBusy        = "busy"           // other answers used the memory for merging
	reasonIncomplete  = "incomplete"     // the answer itself lacks an upstream
	reasonLoop        = "loop"           // the upstream is this server
)

// maxHeaderBytes bounds the header of an answer.
const maxHeaderBytes = 1 << 20

// transport sends requests, counts them, and ends answers that pause for too long.
type transport struct {
	http    *http.Transport
	stats   *stats
	timeout time.Duration
	added   masking.Credentials
}

func newTransport(cfg Config, s *stats) *transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &transport{stats: s, timeout: cfg.Timeout, added: masking.New(cfg.Username, cfg.Password, cfg.Headers), http: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: cfg.TLS, TLSHandshakeTimeout: 5 * time.Second,
		ResponseHeaderTimeout: cfg.Timeout, MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns: 128, MaxIdleConnsPerHost: 128, IdleConnTimeout: time.Minute, ExpectContinueTimeout: time.Second,
	}}
}

var errPaused = errors.New("the upstream Clouddriver paused for too long in the middle of an answer")

var errEncoding = errors.New("the answer cannot be read")

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	start := time.Now()
	response, err := t.http.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		t.countFailure(r.Context(), err)
		return nil, err
	}
	if response.StatusCode >= http.StatusBadGateway { // Clouddriver answers 500 if a cluster cannot be read
		t.stats.fail(reasonOfResponse(response), nil)
	} else {
		t.stats.succeed(time.Since(start))
	}
	response.Body = &watchedBody{body: response.Body, cancel: cancel, timeout: t.timeout}
	hidden, err := t.added.Hide(response)
	if err != nil {
		response.Body.Close()
		t.stats.reject(reasonInvalid, err)
		return nil, fmt.Errorf("%w: %w", errEncoding, err)
	}
	return hidden, nil
}

// countFailure counts an error, unless the caller caused it.
func (t *transport) countFailure(ctx context.Context, err error) {
	if errors.Is(context.Cause(ctx), context.Canceled) || errors.Is(err, middleware.ErrSlowBody) {
		return
	}
	var tooLarge *http.MaxBytesError
	if !errors.As(err, &tooLarge) {
		t.stats.fail(reasonOf(err), err)
	}
}

// reasonOfResponse returns the reason for a response without a usable body.
func reasonOfResponse(r *http.Response) string {
	if r.Header.Get(incompleteHeader) == incompleteFor(reasonLoop) {
		return reasonLoop
	}
	return reasonOfCode(r.StatusCode)
}

// reasonOfCode returns the reason for a status without a usable body.
func reasonOfCode(code int) string { return "status-" + strconv.Itoa(code) }

// reasonOf returns the reason for an error of sending a request.
func reasonOf(err error) string {
	var netErr net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errPaused), errors.As(err, &netErr) && netErr.Timeout():
		return reasonTimeout
	case errors.Is(err, io.ErrUnexpectedEOF):
		return reasonCutOff
	case errors.Is(err, errEncoding):
		return reasonInvalid
	}
	return reasonUnreachable
}

// watchedBody is the body of an answer. A read that takes longer than the timeout fails.
type watchedBody struct {
	body    io.ReadCloser
	cancel  context.CancelCauseFunc
	timeout time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.timeout, func() { b.cancel(errPaused) })
	n, err := b.body.Read(p)
	if !timer.Stop() && err != nil {
		err = fmt.Errorf("%w: %w", errPaused, err)
	}
	return n, err
}

// Close releases the connection.
func (b *watchedBody) Close() error {
	defer b.cancel(nil)
	return b.body.Close()
}
