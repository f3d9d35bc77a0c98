package metricset

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener accepts connections without buffers.
type pipeListener chan net.Conn

// Accept implements net.Listener.
func (l pipeListener) Accept() (net.Conn, error) {
	if conn := <-l; conn != nil {
		return conn, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l pipeListener) Close() error {
	close(l)
	return nil
}

// Addr implements net.Listener.
func (pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

type connFrom struct {
	net.Conn
	address string
}

// RemoteAddr implements net.Conn.
func (c connFrom) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.address), Port: 1} }

// request sends a request from an address, and returns the connection.
func (l pipeListener) request(t *testing.T, address string) net.Conn {
	t.Helper()
	server, client := net.Pipe()
	l <- connFrom{server, address}
	if _, err := io.WriteString(client, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return client
}

// TestSlowReadersOfMetrics lets clients ask for metrics that they do not read. The answers that are in memory are few, others are
// answered meanwhile, and the slow ones are disconnected.
func TestSlowReadersOfMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, listener := New(), make(pipeListener)
		var scrapes atomic.Int64
		s.OnScrape(func() { scrapes.Add(1) })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, listener, nil, slog.New(slog.DiscardHandler)) }()
		var slow []net.Conn
		flood := func(address string, want int64) {
			t.Helper()
			for range 8 {
				slow = append(slow, listener.request(t, address))
			}
			if n := scrapes.Load(); n != want {
				t.Errorf("got %d scrapes of which nothing was read, want %d", n, want)
			}
		}
		scrapeFrom := func(address string, longest time.Duration) {
			t.Helper()
			start, conn := time.Now(), listener.request(t, address)
			defer conn.Close()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if took := time.Since(start); resp.StatusCode != http.StatusOK || err != nil || took > longest {
				t.Errorf("from %s: got %s and error %v after %s, want an answer after %s at most", address, resp.Status, err, took, longest)
			}
		}
		flood("10.0.0.1", maxScrapes/2)
		scrapeFrom("10.0.0.9", 0)
		scrapes.Store(maxScrapes / 2)
		for i := range 2 {
			flood(fmt.Sprint("10.0.1.", i), maxScrapes)
		}
		scrapeFrom("10.0.0.9", answerTimeout) // with the first that are disconnected
		time.Sleep(queueTimeout + writeTimeout)
		for _, conn := range slow {
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatalf("a client that read nothing got %v, want the end of its connection", err)
			}
		}
		scrapeFrom("10.0.0.9", 0)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
