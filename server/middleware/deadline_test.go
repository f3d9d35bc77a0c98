package middleware_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/middleware"
)

// pipes is a listener of connections in memory, which time in a bubble goes for.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// dial returns a connection to a server of a handler that runs until the test ends.
func dial(t *testing.T, handler http.HandlerFunc) net.Conn {
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	srv := &http.Server{Handler: middleware.Deadlines(handler)}
	go func() { _ = srv.Serve(l) }()
	here, there := net.Pipe()
	l.conns <- there
	t.Cleanup(func() { _ = here.Close(); _ = srv.Close() })
	return here
}

// upload answers how much of a body came, and why it ended.
func upload(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if errors.Is(err, middleware.ErrSlowBody) {
		w.WriteHeader(http.StatusRequestTimeout)
	}
	fmt.Fprintf(w, "%d %v", len(b), err)
}

func answer(t *testing.T, r *bufio.Reader) (int, string) {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func TestSlowBodies(t *testing.T) {
	for _, tt := range []struct {
		why          string
		piece, times int
		every        time.Duration
		code         int
		took         time.Duration
	}{
		{"at once", 100, 1, 0, 200, 0},
		{"a line of 2 KiB a second, for an hour", 40 << 10, 180, 20 * time.Second, 200, 179 * 20 * time.Second},
		{"long after the first half", 2 << 20, 2, 29 * time.Second, 200, 29 * time.Second},
		{"nothing after the first half", 2 << 20, 2, time.Hour, 408, 30 * time.Second},
		{"a byte every ten seconds", 1, 1000, 10 * time.Second, 408, 30 * time.Second},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := dial(t, upload)
				began, sent := time.Now(), make(chan struct{})
				go func() {
					defer close(sent)
					fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", tt.piece*tt.times)
					for i := range tt.times {
						if i > 0 {
							time.Sleep(tt.every)
						}
						if _, err := io.WriteString(conn, strings.Repeat("x", tt.piece)); err != nil {
							return
						}
					}
				}()
				code, text := answer(t, bufio.NewReader(conn))
				if took := time.Since(began).Round(time.Second); code != tt.code || took != tt.took {
					t.Errorf("%d %s after %v, want %d after %v", code, text, took, tt.code, tt.took)
				}
				_ = conn.Close()
				<-sent
			})
		})
	}
}

// TestLongHandlers holds that a handler may take its time once a body is there, and
// that its caller's leaving is still seen then.
func TestLongHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan error, 1)
		conn := dial(t, func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if r.URL.Path == "/left" {
				<-r.Context().Done()
				left <- context.Cause(r.Context())
				return
			}
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
				t.Error("the request ended by itself")
			}
			fmt.Fprintf(w, "%d %v", len(b), err)
		})
		answers := bufio.NewReader(conn)
		for range 2 { // the second one on the same connection
			go func() { _, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab") }()
			if code, text := answer(t, answers); code != 200 || text != "2 <nil>" {
				t.Errorf("%d %s", code, text)
			}
		}
		go func() {
			_, _ = io.WriteString(conn, "POST /left HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
			time.Sleep(time.Minute)
			_ = conn.Close()
		}()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestSlowReaders has readers that take an answer of 4 MiB: one at 128 KiB a second
// gets it, one that stops loses the connection, unless the handler decides itself.
func TestSlowReaders(t *testing.T) {
	for _, tt := range []struct {
		why   string
		takes int // bytes a second
		own   bool
		took  time.Duration // until the handler was done
		whole bool
	}{
		{"a slow line", 128 << 10, false, 32 * time.Second, true},
		{"hardly anything", 1 << 10, false, 31 * time.Second, false},
		{"nothing", 0, false, 31 * time.Second, false},
		{"nothing of what a handler sends as it happens", 0, true, 5 * time.Second, false},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, began := make(chan error, 1), time.Now()
				conn := dial(t, func(w http.ResponseWriter, _ *http.Request) {
					if tt.own {
						_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(5 * time.Second))
					}
					var err error
					for range 64 {
						if _, err = w.Write(make([]byte, 64<<10)); err != nil {
							break
						}
					}
					done <- err
				})
				taken := make(chan struct{})
				go func() {
					defer close(taken)
					_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
					for tt.takes > 0 {
						if _, err := io.CopyN(io.Discard, conn, int64(tt.takes)); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				}()
				err := <-done
				_ = conn.Close()
				<-taken
				if took := time.Since(began).Round(time.Second); (err == nil) != tt.whole || took-tt.took > time.Second || tt.took-took > time.Second {
					t.Errorf("the handler was done after %v, with %v", took, err)
				}
			})
		})
	}
}
