package middleware

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Measurement describes one request, for metrics.
type Measurement struct {
	Route  string        // as SetRoute set it; empty if no route matched
	Status int           // 0 if the connection was closed without a response
	Took   time.Duration // until the response began, or until the end if there was none
}

// Measure calls observe after each request. The time ends when the response begins, because the
// body's time depends on its reader, and streams last for hours.
func Measure(next http.Handler, observe func(Measurement)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var route atomic.Pointer[string]
		m := &measuredWriter{ResponseWriter: w, start: time.Now()}
		returned := false
		defer func() {
			if returned {
				m.begin(http.StatusOK) // what net/http sends if a handler writes nothing
			}
			done := Measurement{Status: m.status, Took: m.took}
			if m.status == 0 {
				done.Took = time.Since(m.start)
			}
			if name := route.Load(); name != nil {
				done.Route = *name
			}
			observe(done)
		}()
		next.ServeHTTP(m, r.WithContext(context.WithValue(r.Context(), routeKey{}, &route)))
		returned = true
	})
}

type routeKey struct{}

// SetRoute records the pattern that matched a request, for Measure. The first call counts, because
// later ones are about requests that a handler makes itself. Routes must be few: not paths, but
// patterns.
func SetRoute(r *http.Request, route string) {
	if to, ok := r.Context().Value(routeKey{}).(*atomic.Pointer[string]); ok {
		to.CompareAndSwap(nil, &route)
	}
}

// measuredWriter records when a response begins, and its status.
type measuredWriter struct {
	http.ResponseWriter
	start  time.Time
	status int
	took   time.Duration
}

func (w *measuredWriter) begin(status int) {
	if w.status == 0 {
		w.status, w.took = status, time.Since(w.start)
	}
}

// Unwrap is called by http.ResponseController.
func (w *measuredWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends the status. Informational ones do not begin the response.
func (w *measuredWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *measuredWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}
