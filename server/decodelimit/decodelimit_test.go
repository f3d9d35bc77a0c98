package decodelimit_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/decodelimit"
)

// bomb is a body of a few bytes a value, which would take a hundred times more memory.
func bomb(size int) []byte {
	return []byte("[" + strings.TrimSuffix(strings.Repeat(`{"":0},`, size/7), ",") + "]")
}

// TestBombsAreRejected checks that bodies that become too much are rejected before they are built.
func TestBombsAreRejected(t *testing.T) {
	for name, body := range map[string][]byte{
		"objects": bomb(32 << 20), "arrays": []byte("[" + strings.Repeat("[],", 10<<20) + "0]"), "depth": []byte(strings.Repeat("[", 32<<20)),
		"objects in an artifact": append(append([]byte(`{"type":"x","metadata":{"a":`), bomb(32<<20)...), "}}"...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decodelimit.Reserve(t.Context(), body)
		runtime.ReadMemStats(&after)
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "the body is too large") {
			t.Errorf("%s: got %v, want it to be rejected", name, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
			t.Errorf("%s: %d KiB were allocated", name, taken>>10)
		}
	}
	if err := decodelimit.Reserve(t.Context(), []byte(`{"account":"a","account":"b"}`)); vedette.KindOf(err) != vedette.Invalid {
		t.Errorf("a name twice: got %v, want it to be rejected", err)
	}
	for _, body := range []string{"", "x", `{"a":1}{`} {
		if err := decodelimit.Reserve(t.Context(), []byte(body)); err != nil {
			t.Errorf("%q: got %v, want it to be left to its parser", body, err)
		}
	}
	large := []byte(`[{"deployManifest":{"manifests":[{"data":"` + strings.Repeat("x", 15<<20) + `"}]}}]`)
	if err := decodelimit.Reserve(t.Context(), large); err != nil {
		t.Errorf("a manifest of 15 MiB: %v", err)
	}
}

// TestBodiesFitTheProcess checks that a server with little memory says that it lacks memory.
func TestBodiesFitTheProcess(t *testing.T) {
	body := bomb(1 << 20) // becomes some 66 MiB
	for available, want := range map[int64]string{0: "", 2 << 30: "", 512 << 20: "give the server 1.5 GiB"} {
		handler := decodelimit.New(available, nil).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			err := decodelimit.Reserve(r.Context(), body)
			if (err != nil) != (want != "") || err != nil && (vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d MiB: got %v, want %q", available>>20, err, want)
			}
		}))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/ops", bytes.NewReader(body)))
	}
}

// TestBodiesShareMemory sends bodies that together become more than the server has.
func TestBodiesShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		outcomes := map[string]chan error{}
		for _, id := range []string{"greedy0", "greedy1", "greedy2", "honest", "other", "small", "later"} {
			outcomes[id] = make(chan error, 1)
		}
		body := map[string][]byte{"large": bomb(1 << 20), "small": []byte(`{"a":1}`)}
		handler := decodelimit.New(0, nil).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			err := decodelimit.Reserve(r.Context(), body[r.URL.Path[1:]])
			err = errors.Join(err, decodelimit.Reserve(r.Context(), body[r.URL.Path[1:]])) // it is read again
			outcomes[r.Header.Get("Id")] <- err
			<-finish
		}))
		send := func(id, user, size string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+size, strings.NewReader("x"))
			r.RemoteAddr = map[string]string{"greedy": "192.0.2.1:1", "honest": "192.0.2.2:1", "other": "192.0.2.3:1"}[user]
			r.Header.Set("Id", id)
			go handler.ServeHTTP(httptest.NewRecorder(), r)
			synctest.Wait()
		}
		// A body of 1 MiB becomes about 70 MiB, so that one of each caller fits, and two in total.
		for i := range 3 {
			send(fmt.Sprintf("greedy%d", i), "greedy", "large")
		}
		send("honest", "honest", "large")
		send("other", "other", "large")
		send("small", "greedy", "small")
		for _, id := range []string{"greedy0", "honest", "small"} {
			if len(outcomes[id]) != 1 {
				t.Errorf("%s waits, want memory for it", id)
			} else if err := <-outcomes[id]; err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range []string{"greedy1", "greedy2", "other"} {
			if len(outcomes[id]) != 1 {
				t.Errorf("%s still waits", id)
			} else if err := <-outcomes[id]; vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "try again") {
				t.Errorf("%s: got %v, want no memory", id, err)
			}
		}
		close(finish)
		synctest.Wait()
		send("later", "greedy", "large")
		if len(outcomes["later"]) != 1 {
			t.Error("the memory of requests that have ended is not free")
		}
	})
}
