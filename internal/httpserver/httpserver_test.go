package httpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestServeWaitsForRequests checks that a request which is under way when the context ends
// is answered within the grace period, and is cut after it.
func TestServeWaitsForRequests(t *testing.T) {
	for _, tt := range []struct {
		name     string
		grace    time.Duration
		answered bool
	}{
		{"within the grace period", time.Minute, true},
		{"without a grace period", 0, false},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		begun, release := make(chan struct{}), make(chan struct{})
		srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-release
			_, _ = io.WriteString(w, "answer")
		})}
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, srv, listener, tt.grace, slog.New(slog.DiscardHandler)) }()
		answered := make(chan error, 1)
		go func() {
			response, err := http.Get("http://" + listener.Addr().String())
			if err == nil {
				err = errors.Join(response.Body.Close())
			}
			answered <- err
		}()
		<-begun
		cancel()
		if !tt.answered {
			if err := <-answered; err == nil {
				t.Errorf("%s: got an answer, want none", tt.name)
			}
		}
		close(release)
		if tt.answered {
			if err := <-answered; err != nil {
				t.Errorf("%s: got %v, want an answer", tt.name, err)
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: Serve returned %v", tt.name, err)
		}
	}
}
