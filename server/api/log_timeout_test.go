package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/api"
)

// singleConnListener is a listener with one connection.
type singleConnListener chan net.Conn

func (l singleConnListener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l singleConnListener) Close() error { return nil }
func (singleConnListener) Addr() net.Addr { return &net.TCPAddr{} }

// serveLog serves a log to a client over a connection without buffers.
func serveLog(t *testing.T, log io.Reader, read func(net.Conn)) (elapsed time.Duration) {
	client, server := net.Pipe()
	ended := make(chan time.Time, 1)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = api.CopyLog(w, log, true)
		ended <- time.Now()
	})}
	conns := make(singleConnListener, 1)
	conns <- server
	go func() { _ = srv.Serve(conns) }()
	defer func() { close(conns); _ = srv.Close(); _ = client.Close() }()
	start := time.Now()
	_, _ = fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: vedette\r\n\r\n")
	read(client)
	return (<-ended).Sub(start)
}

// TestStalledLogReaderTimesOut checks that a log is closed if its client reads nothing for a
// minute, and that a log that is silent for longer stays open.
func TestStalledLogReaderTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := io.MultiReader(strings.NewReader(strings.Repeat("line\n", 1<<20)), strings.NewReader(strings.Repeat("line\n", 1<<20)))
		elapsed := serveLog(t, endless, func(c net.Conn) { _, _ = c.Read(make([]byte, 100)) })
		if elapsed != api.LogWriteTimeout {
			t.Errorf("duration of the log: got %v, want %v", elapsed, api.LogWriteTimeout)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		log, in := io.Pipe()
		go func() {
			for range 3 {
				time.Sleep(3 * time.Hour)
				_, _ = io.WriteString(in, "line\n")
			}
			_ = in.Close()
		}()
		var body []byte
		serveLog(t, log, func(c net.Conn) {
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err = io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
		})
		if string(body) != "line\nline\nline\n" {
			t.Errorf("got %q", body)
		}
	})
}
