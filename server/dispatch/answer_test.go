package dispatch

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readlimit"
)

// TestAnswersAreCountedUntilTheyAreWritten reads lists while others were not written yet.
func TestAnswersAreCountedUntilTheyAreWritten(t *testing.T) {
	limiter := readlimit.New(readlimit.Config{Bytes: 16 << 20, UserShare: 4 << 20})
	list := vedette.Outcome{ID: "1", State: vedette.Done, Objects: []json.RawMessage{bytes.Repeat([]byte("x"), 3<<20)}, Keys: make([]vedette.Key, 1)}
	small := vedette.Outcome{State: vedette.Done, Objects: []json.RawMessage{[]byte("{}")}}
	reads, changes := vedette.Operation{Args: vedette.ListArgs{}}, vedette.Operation{Args: vedette.DeleteArgs{}}
	within := func(address string, do func(r *http.Request)) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr = address
		limiter.HoldAnswers(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { do(r) })).ServeHTTP(httptest.NewRecorder(), r)
	}
	within("192.0.2.1:1", func(first *http.Request) {
		if out := held(first.Context(), reads, list); out.State != vedette.Done || len(out.Objects) != 1 {
			t.Errorf("got %s %s, want the list", out.State, out.Message)
		}
		within("192.0.2.1:2", func(second *http.Request) {
			if out := held(second.Context(), reads, list); out.State != vedette.Failed || out.Status != 503 || out.Reason != "Busy" || out.Objects != nil || out.ID != "1" {
				t.Errorf("got %s %d %s with %d objects, want that the list finds no memory", out.State, out.Status, out.Reason, len(out.Objects))
			}
			if out := held(second.Context(), changes, list); out.State != vedette.Done || out.Objects != nil || len(out.Warnings) != 1 || len(out.Keys) != 1 {
				t.Errorf("got %s with %d objects and %q, want the outcome of a change without objects", out.State, len(out.Objects), out.Warnings)
			}
			if out := held(second.Context(), reads, small); len(out.Objects) != 1 {
				t.Errorf("got %d objects, want a small answer", len(out.Objects))
			}
		})
		within("192.0.2.1:4", func(fourth *http.Request) { // all that an agent may send counts
			long := strings.Repeat("x", 3<<20)
			for what, out := range map[string]vedette.Outcome{"message": {Message: long}, "reason": {Reason: long}, "warning": {Warnings: []string{long}},
				"key": {Keys: []vedette.Key{{Name: long}}}, "uid": {UIDs: []string{long}}, "object to store": {CacheObject: &vedette.Object{Body: []byte(long)}},
				"awaited object": {Awaited: &vedette.ObjectVersion{Version: long}}, "absent object": {Absent: &vedette.Absence{Key: vedette.Key{Name: long}}}} {
				if got := held(fourth.Context(), reads, out); got.Reason != "Busy" {
					t.Errorf("a long %s of a read: got %.100q, want that it finds no memory", what, got.Reason)
				}
				if got := held(fourth.Context(), changes, out); answerSize(&got) > freeAnswerBytes || len(got.Warnings) == 0 || len(got.Keys) != len(out.Keys) {
					t.Errorf("a long %s of a change: got %d bytes, want what matters", what, answerSize(&got))
				}
			}
		})
		within("192.0.2.2:1", func(other *http.Request) {
			if out := held(other.Context(), reads, list); out.State != vedette.Done {
				t.Errorf("got %s %s for another caller, want the list", out.State, out.Message)
			}
		})
	})
	within("192.0.2.1:3", func(later *http.Request) {
		if out := held(later.Context(), reads, list); out.State != vedette.Done {
			t.Errorf("got %s %s after the others have ended, want the list", out.State, out.Message)
		}
		defer held(t.Context(), reads, list) // without a request nothing is counted
	})
}
