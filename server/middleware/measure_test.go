package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/middleware"
)

func TestRequestsAreMeasuredUntilTheHeader(t *testing.T) {
	for _, tt := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"a body without a status", func(w http.ResponseWriter, r *http.Request) {
			middleware.SetRoute(r, "GET /accounts/{name}")
			_, _ = io.WriteString(w, "x")
		}, "GET /accounts/{name} 200 0s"},
		{"the first route counts", func(w http.ResponseWriter, r *http.Request) {
			middleware.SetRoute(r, "outer")
			middleware.SetRoute(r, "inner")
			w.WriteHeader(http.StatusNotFound)
		}, "outer 404 0s"},
		{"no route and no response", func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }, " 200 1s"},
		{"the time of the body does not count", func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Second)
			w.WriteHeader(http.StatusEarlyHints)
			time.Sleep(time.Second)
			w.WriteHeader(http.StatusTeapot)
			time.Sleep(time.Hour)
			_, _ = io.WriteString(w, "x")
		}, " 418 2s"},
		{"a handler that closes the connection", func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Minute)
			panic(http.ErrAbortHandler)
		}, " 0 1m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := ""
				h := middleware.Measure(tt.handle, func(m middleware.Measurement) { got += fmt.Sprint(m.Route, " ", m.Status, " ", m.Took) })
				func() {
					defer func() { _ = recover() }()
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
				}()
				if got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestMeasureKeepsDeadlines checks that handlers can still set deadlines and flush.
func TestMeasureKeepsDeadlines(t *testing.T) {
	server := httptest.NewServer(middleware.Measure(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		for _, err := range []error{control.SetWriteDeadline(time.Now().Add(time.Minute)), control.Flush()} {
			if err != nil {
				t.Error(err)
			}
		}
	}), func(middleware.Measurement) {}))
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

// TestSetRouteWithoutMeasure checks that handlers work alone, as in their own tests.
func TestSetRouteWithoutMeasure(*testing.T) {
	middleware.SetRoute(httptest.NewRequest(http.MethodGet, "/", nil), "GET /")
}
