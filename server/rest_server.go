package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/connlimit"
	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/decodelimit"
	"github.com/vedette-io/vedette/server/membudget"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/readlimit"
)

func (s *Server) serveREST(ctx context.Context) error {
	answers := readlimit.New(readlimit.Config{Bytes: answerBytes, UserShare: answerBytes / 2})
	handler := middleware.LimitBodies(decodelimit.New(s.cfg.Memory, nil).Handler(answers.HoldAnswers(s.handler)), s.cfg.Memory)
	listener := connlimit.New(s.rest, connlimit.Config{HeaderBytes: membudget.Fit(headerBytes, s.cfg.Memory), Reject: rejectConnection,
		Log: logthrottle.Logger(s.log)})
	srv := newRESTServer(s.requests.handler(ctx, middleware.Measure(listener.Handler(s.withMiddleware(handler)), s.cfg.Metrics.RequestEnded)))
	srv.ConnContext = listener.ConnContext
	srv.TLSConfig = s.cfg.RESTTLS
	// A request that is under way when the server stops is answered, with what its operation did.
	base, cancel := timeoutAfter(ctx, stopTimeout)
	defer cancel()
	srv.BaseContext = func(net.Listener) context.Context { return base }
	if err := httpserver.Serve(ctx, srv, listener, stopTimeout, s.log); err != nil {
		return fmt.Errorf("serve REST on %s: %w", s.rest.Addr(), err)
	}
	s.requests.drain(base)
	return nil
}

// headerBytes limits the memory of the headers of all requests, in a process with enough memory.
const headerBytes = 64 << 20

// answerBytes limits the memory of clusters' answers to operations until they are written. The largest one
// has 48 MiB, which is what one source may have.
const answerBytes = 128 << 20

// rejectConnection answers a request for which there is no connection, or no memory for its headers.
func rejectConnection(w http.ResponseWriter, r *http.Request, message string) {
	middleware.Reject(w, r, http.StatusServiceUnavailable, vedette.Unavailable, message)
}

// maxHeaderBytes limits the request line and all headers together, before a handler sees them. The
// largest is X-SPINNAKER-ACCOUNTS, with each account that a user may use: 128 KiB are 3,000 to 4,000.
const maxHeaderBytes = 128 << 10

func newRESTServer(handler http.Handler) *http.Server {
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeaderBytes,
		Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true) // no HTTP/2: readers' deadlines and limits are those of a connection
	return srv
}

// withMiddleware adds what is done with each REST request, from the outside to the inside.
func (s *Server) withMiddleware(handler http.Handler) http.Handler {
	handler = s.cfg.TrustedCallers.Handler(authorize.MarkToken(s.cfg.AdminToken, handler))
	handler = middleware.LimitURLs(middleware.RejectAmbiguousIdentity(handler))
	handler = middleware.GuardHost(handler, s.rest.Addr(), s.cfg.RESTHosts)
	if s.cfg.Tracing != nil {
		handler = middleware.Trace(handler, s.cfg.Tracing)
	}
	return middleware.Deadlines(middleware.RequestID(handler, s.log))
}
