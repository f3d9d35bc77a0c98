package httpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener accepts one connection.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error {
	close(l.done)
	return nil
}

func (pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowClientsAreDisconnected checks when connections of clients end that send slowly or nothing. A
// request that takes long is not disturbed.
func TestSlowClientsAreDisconnected(t *testing.T) {
	for name, tt := range map[string]struct {
		sent string
		want time.Duration
	}{
		"nothing":                   {"", 5 * time.Second},
		"half a header":             {"GET / HTTP/1.1\r\nHost: a\r\nX: ", 5 * time.Second},
		"a request, then nothing":   {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 2 * time.Minute},
		"a request without a body":  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", time.Minute + 5*time.Second},
		"a request without a chunk": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", time.Minute + 5*time.Second},
		"a large header":            {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 40<<10), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := net.Pipe()
				listener := pipeListener{make(chan net.Conn, 1), make(chan struct{})}
				listener.conns <- server
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				srv := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(time.Minute): // longer than all limits on reading
					case <-r.Context().Done():
						t.Error("the request was canceled")
					}
				}), nil)
				go func() { ended <- Serve(ctx, srv, listener, 0, slog.New(slog.DiscardHandler)) }()
				start := time.Now()
				go func() { _, _ = io.WriteString(client, tt.sent) }()
				_, _ = io.Copy(io.Discard, client) // until the server closes the connection
				if took := time.Since(start); took > tt.want {
					t.Errorf("the connection was closed after %s, want at most %s", took, tt.want)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

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

// TestOneAddressCannotOccupyThePort occupies a port from one address. Another one is served.
func TestOneAddressCannotOccupyThePort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	srv := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }), nil)
	ended := make(chan error, 1)
	log := slog.New(slog.DiscardHandler)
	go func() { ended <- Serve(ctx, srv, Limit(srv, listener, log), 0, log) }()
	for range MaxConnections / 2 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for from, want := range map[string]int{"127.0.0.1": http.StatusServiceUnavailable, "127.0.0.2": http.StatusOK} {
		client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}}
		response, err := client.Get("http://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("from %s: got %s, want %d", from, response.Status, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
