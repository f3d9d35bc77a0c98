package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/readlimit"
)

// TestBodiesShareMemory lets one caller send as many large bodies as possible, some of them without a
// length. It must wait for itself, and others must not.
func TestBodiesShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish, running := make(chan struct{}), make(chan string, 100)
		handler := limitBodies(readlimit.New(readlimit.Config{Bytes: bodyBytes}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			running <- r.Header.Get("X-Spinnaker-User")
			<-finish
		}))
		send := func(path, user string, length int64) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, io.NopCloser(strings.NewReader("")))
			r.ContentLength = length
			r.Header.Set("X-Spinnaker-User", user)
			w := httptest.NewRecorder()
			go handler.ServeHTTP(w, r)
			synctest.Wait()
			return w
		}
		send("/kubernetes/ops", "greedy", maxBodyBytes)
		for _, length := range []int64{-1, maxBodyBytes, 1 << 40} {
			waiting := send("/kubernetes/ops", "greedy", length)
			if len(running) != 1 {
				t.Fatalf("a second body of %d bytes: got %d requests at a time, want 1", length, len(running))
			}
			time.Sleep(time.Minute)
			synctest.Wait() // for the request, which writes the response
			if waiting.Code != http.StatusServiceUnavailable || waiting.Header().Get("Retry-After") == "" || !strings.Contains(waiting.Body.String(), `"status":503`) {
				t.Errorf("a second body of %d bytes: got %d %s, want 503 with Retry-After", length, waiting.Code, waiting.Body)
			}
		}
		if w := send("/vedette/v1/operations", "greedy", -1); len(running) != 1 {
			t.Errorf("got %d, want a request that waits", w.Code)
		}
		send("/kubernetes/ops", "greedy", 1<<10) // small ones have memory of their own
		send("/kubernetes/ops", "honest", maxBodyBytes)
		send("/kubernetes/ops", "greedy", 0)
		if len(running) != 4 {
			t.Errorf("got %d requests at a time, want those of others, small ones and those without a body, too", len(running))
		}
		close(finish)
		synctest.Wait()
		if len(running) != 5 {
			t.Errorf("got %d requests, want the waiting one, too", len(running))
		}
	})
}
