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

// pipeListener listens for in-memory connections, which work with the clock of a synctest bubble.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error   { close(p.done); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// dial returns a connection to a server that serves handler until the test ends.
func dial(t *testing.T, handler http.HandlerFunc) net.Conn {
	l := &pipeListener{make(chan net.Conn), make(chan struct{})}
	srv := &http.Server{Handler: middleware.Deadlines(handler)}
	go func() { _ = srv.Serve(l) }()
	client, server := net.Pipe()
	l.conns <- server
	t.Cleanup(func() { _ = client.Close(); _ = srv.Close() })
	return client
}

// upload responds with the number of bytes in the body, and the error that ended it.
func upload(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if errors.Is(err, middleware.ErrSlowBody) {
		w.WriteHeader(http.StatusRequestTimeout)
	}
	fmt.Fprintf(w, "%d %v", len(b), err)
}

func readResponse(t *testing.T, r *bufio.Reader) (int, string) {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func TestTooSlowBodiesTimeOut(t *testing.T) {
	for _, tt := range []struct {
		name         string
		chunk, times int
		every        time.Duration
		code         int
		elapsed      time.Duration
	}{
		{"one byte per chunk, no pause", 100, 1, 0, 200, 0},
		{"33 KiB per second for a quarter of an hour", 660 << 10, 45, 20 * time.Second, 200, 44 * 20 * time.Second},
		{"2 KiB per second", 40 << 10, 180, 20 * time.Second, 408, 33 * time.Second},
		{"29 s after the first half", 2 << 20, 2, 29 * time.Second, 200, 29 * time.Second},
		{"nothing after the first half", 2 << 20, 2, time.Hour, 408, 30 * time.Second},
		{"a byte every ten seconds", 1, 1000, 10 * time.Second, 408, 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := dial(t, upload)
				start, sent := time.Now(), make(chan struct{})
				go func() {
					defer close(sent)
					fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", tt.chunk*tt.times)
					for i := range tt.times {
						if i > 0 {
							time.Sleep(tt.every)
						}
						if _, err := io.WriteString(conn, strings.Repeat("x", tt.chunk)); err != nil {
							return
						}
					}
				}()
				code, text := readResponse(t, bufio.NewReader(conn))
				if elapsed := time.Since(start).Round(time.Second); code != tt.code || elapsed != tt.elapsed {
					t.Errorf("got %d %s after %v, want %d after %v", code, text, elapsed, tt.code, tt.elapsed)
				}
				_ = conn.Close()
				<-sent
			})
		})
	}
}

// TestHandlersMayTakeLong checks that a handler may take long once the body has arrived, and that it still
// notices when its client leaves.
func TestHandlersMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		conn := dial(t, func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if r.URL.Path == "/left" {
				<-r.Context().Done()
				causes <- context.Cause(r.Context())
				return
			}
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
				t.Error("the request's context ended, but the client has not left")
			}
			fmt.Fprintf(w, "%d %v", len(b), err)
		})
		responses := bufio.NewReader(conn)
		for range 2 { // the second request on the same connection
			go func() { _, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab") }()
			if code, text := readResponse(t, responses); code != 200 || text != "2 <nil>" {
				t.Errorf("%d %s", code, text)
			}
		}
		go func() {
			_, _ = io.WriteString(conn, "POST /left HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
			time.Sleep(time.Minute)
			_ = conn.Close()
		}()
		if err := <-causes; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestStoppedReadersLoseTheirConnection sends a response of 4 MiB to slow clients. A client at 128 KiB per second gets
// all of it. A client that stops loses its connection, unless the handler sets its own deadlines.
func TestStoppedReadersLoseTheirConnection(t *testing.T) {
	for _, tt := range []struct {
		name        string
		rate        int // bytes per second
		ownDeadline bool
		elapsed     time.Duration // until the handler ended
		complete    bool
	}{
		{"a slow client", 128 << 10, false, 32 * time.Second, true},
		{"a very slow client", 1 << 10, false, 31 * time.Second, false},
		{"nothing", 0, false, 31 * time.Second, false},
		{"a client that stops reading a stream", 0, true, 5 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, start := make(chan error, 1), time.Now()
				conn := dial(t, func(w http.ResponseWriter, _ *http.Request) {
					if tt.ownDeadline {
						_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(5 * time.Second))
					}
					var err error
					for range 64 {
						_, err = w.Write(make([]byte, 64<<10))
						if err != nil {
							break
						}
					}
					done <- err
				})
				readerDone := make(chan struct{})
				go func() {
					defer close(readerDone)
					_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
					for tt.rate > 0 {
						if _, err := io.CopyN(io.Discard, conn, int64(tt.rate)); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				}()
				err := <-done
				_ = conn.Close()
				<-readerDone
				if elapsed := time.Since(start).Round(time.Second); (err == nil) != tt.complete || elapsed-tt.elapsed > time.Second || tt.elapsed-elapsed > time.Second {
					t.Errorf("got handler done after %v with error %v", elapsed, err)
				}
			})
		})
	}
}
