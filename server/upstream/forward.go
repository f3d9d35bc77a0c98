package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/decodelimit"
	"github.com/vedette-io/vedette/server/middleware"
)

// newProxy returns the handler that passes on requests. Bodies stream in both directions.
func (h *Handler) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: h.client.transport, FlushInterval: -1, ErrorHandler: h.failForward,
		ErrorLog: slog.NewLogLogger(h.client.Log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = h.client.url(r.In.URL, r.Out.URL.RawQuery)
			r.Out.Host = ""
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			// Clouddriver has no other protocols, and a switched connection would have no limits.
			r.Out.Header.Del("Connection")
			r.Out.Header.Del("Upgrade")
			acceptKnownEncodings(r.Out.Header)
			h.client.complete(r.In.Context(), r.Out.Header)
		},
	}
}

// acceptKnownEncodings asks for no encoding but gzip, so that credentials are found in what comes back.
func acceptKnownEncodings(header http.Header) {
	accepted := strings.Join(header.Values("Accept-Encoding"), ",")
	switch {
	case accepted == "": // the transport decodes the answer
	case strings.Contains(accepted, "gzip"):
		header.Set("Accept-Encoding", "gzip")
	default:
		header.Set("Accept-Encoding", "identity")
	}
}

func (h *Handler) forward(w http.ResponseWriter, r *http.Request) error {
	if err := checkPath(r.URL); err != nil {
		return err
	}
	if hint := web.ScaleAgentHint(r.Method, r.URL.EscapedPath()); hint != "" {
		caller := w
		w = &missingWriter{ResponseWriter: caller, write: func() { web.WriteNoHandler(caller, r, hint) }}
	}
	return h.proxyTo(w, r)
}

func (h *Handler) proxyTo(w http.ResponseWriter, r *http.Request) error {
	h.proxy.ServeHTTP(&streamWriter{w, http.NewResponseController(w), h.client.Timeout}, r)
	return nil
}

// missingWriter replaces a 404 of a Clouddriver that does not have a path of the Scale Agent, or what is asked for there, either.
type missingWriter struct {
	http.ResponseWriter
	write      func() // writes the answer instead
	isReplaced bool
}

// Unwrap is called by http.ResponseController.
func (w *missingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes the whole answer if it is a 404.
func (w *missingWriter) WriteHeader(status int) {
	if status != http.StatusNotFound || w.isReplaced {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.isReplaced = true
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Type", "Etag", "Trailer"} {
		w.Header().Del(name)
	}
	w.write()
}

func (w *missingWriter) Write(p []byte) (int, error) {
	if w.isReplaced {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// failForward answers a request that could not be passed on.
func (h *Handler) failForward(w http.ResponseWriter, r *http.Request, err error) {
	var tooLarge *http.MaxBytesError
	var network *net.OpError
	if forget, ok := r.Context().Value(notReachedKey{}).(func()); ok && errors.As(err, &network) && network.Op == "dial" {
		forget()
	}
	if !errors.Is(err, middleware.ErrSlowBody) && !errors.As(err, &tooLarge) && !errors.Is(err, context.Canceled) {
		err = unavailable(reasonOf(err))
	}
	h.fail(w, r, err)
}

// unavailable returns the error of a request that needs the upstream Clouddriver's answer.
func unavailable(reason string) error {
	switch reason {
	case reasonBusy:
		return vedette.Errorf(vedette.Unavailable, "the memory for answers of both Clouddrivers is used by other requests (%s): try again, or set upstream.mergeBytes higher", reason)
	case reasonTooLarge:
		return vedette.Errorf(vedette.Unavailable, "the answer of both Clouddrivers needs more memory than one may take (%s): set upstream.mergeBytes higher, or see "+
			"whether the Clouddriver at upstream.baseUrl answers as it should", reason)
	}
	return vedette.Errorf(vedette.Unavailable, "the Clouddriver at upstream.baseUrl did not answer as it should (%s), and this server itself only knows "+
		"accounts of agents: try again, and see the logs of that Clouddriver", reason)
}

// unavailableLocal returns the error of an answer of this server that cannot be kept until it is complete.
func unavailableLocal(err error) error {
	switch {
	case errors.Is(err, fair.ErrTooLarge):
		return unavailable(reasonTooLarge)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable(reasonBusy)
	}
	return fmt.Errorf("merge this server's part of an answer: %w", err)
}

// streamWriter is a response that lasts as long as the client reads it. Each write has a time limit
// of its own.
type streamWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// Unwrap is called by http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader passes on no informational responses, which Clouddriver does not send.
func (w *streamWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *streamWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // an error means that deadlines are not supported
	return w.ResponseWriter.Write(p)
}

// maxBodyBytes bounds a request body that decides who answers. Package clouddriver has the same
// limit.
const maxBodyBytes = 32 << 20

// readBody reads the body of a request, and puts it back for whoever answers.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the request body: %w", err)
	}
	setBody(r, raw)
	return raw, decodelimit.Reserve(r.Context(), raw)
}

func setBody(r *http.Request, raw []byte) {
	r.Body = io.NopCloser(bytes.NewReader(raw))
	// A request on a connection that the other side has closed meanwhile can be sent again.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	r.ContentLength = int64(len(raw))
	r.TransferEncoding = nil
}
