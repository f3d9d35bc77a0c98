package middleware

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/vedette-io/vedette/internal/requestid"
)

// requestIDHeaders are the headers that may name a request, the most specific choice of the caller
// first. Orca's execution id is the same for all requests of a pipeline.
var requestIDHeaders = [...]string{requestid.Header, "X-Spinnaker-Execution-Id", "X-Spinnaker-Request-Id"}

// RequestID gives each request an id, which is in the log lines about it, and in the header
// X-Request-Id of the response. It is that of a header, or a new one. At level debug it logs each
// request.
func RequestID(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestIDOf(r.Header)
		w.Header().Set(requestid.Header, id)
		ctx := requestid.With(r.Context(), id)
		r = r.WithContext(ctx)
		if !log.Enabled(ctx, slog.LevelDebug) {
			next.ServeHTTP(w, r)
			return
		}
		started, recorder := time.Now(), &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		defer recorder.log(r, log, started) // also if the handler panics to close the connection
		next.ServeHTTP(recorder, r)
	})
}

func requestIDOf(header http.Header) string {
	for _, name := range requestIDHeaders {
		if id := header.Get(name); requestid.IsValid(id) {
			return id
		}
	}
	return requestid.New()
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// Unwrap is called by http.ResponseController.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusRecorder) log(r *http.Request, log *slog.Logger, started time.Time) {
	log.DebugContext(r.Context(), "REST request", "method", r.Method, "path", r.URL.Path, "status", s.status, "duration", time.Since(started))
}
