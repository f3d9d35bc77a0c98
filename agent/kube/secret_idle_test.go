package kube

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleSecretWatchTimesOut checks that a watch of Secrets continues while bookmarks
// arrive, and ends after DefaultIdleTimeout without one.
func TestIdleSecretWatchTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			request := make([]byte, 4<<10)
			_, _ = far.Read(request) // a net.Pipe fails only after Close
			fmt.Fprint(far, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			for range 5 {
				time.Sleep(time.Minute)
				fmt.Fprint(far, "1\r\nx\r\n")
			}
		}()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cluster/api/v1/secrets?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		resp, err := (&secretTransport{}).roundTripHTTP1(near, req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if len(got) != 5 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 5*time.Minute+DefaultIdleTimeout {
			t.Errorf("got %q, error %v after %v, want 5 bytes and a timeout after %v", got, err, time.Since(began), 5*time.Minute+DefaultIdleTimeout)
		}
	})
}
