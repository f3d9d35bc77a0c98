package operate

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/internal/fair"
)

// TestAbsenceWithoutMemory checks that an agent without memory for answers still understands that an object does not exist, and takes no
// answer of an API server for that of a proxy.
func TestAbsenceWithoutMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		message        string
		status         int
		reason, phrase string
	}{
		"a short answer": {`configmaps "x" not found`, http.StatusNotFound, "NotFound", "not found"},
		"a long answer":  {strings.Repeat("x", 100_000), http.StatusServiceUnavailable, "Busy", "no memory"},
	} {
		o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond}}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"kind":"Status","code":404,"reason":"NotFound","message":%q}`, tt.message)
		})
		get := vedette.Operation{Args: vedette.GetArgs{Target: configMapX}, Deadline: time.Now().Add(time.Minute)}
		o.Execute(t.Context(), get) // so that it knows the kind
		line := fair.NewSplit(fair.Config{}, fair.Config{Capacity: 1_000_000, Share: 1_000_000, Wait: time.Millisecond}, 0)
		defer line.TryAcquire("b", 999_999).Release()
		out := o.ExecuteControlled(t.Context(), get, request.Control{Memory: line.TryAcquire("a", 1)})
		if out.Status != tt.status || out.Reason != tt.reason || !strings.Contains(out.Message, tt.phrase) {
			t.Errorf("%s: got %d %s: %.300s, want %d %s", name, out.Status, out.Reason, out.Message, tt.status, tt.reason)
		}
	}
}

// TestHalfAnAbsence checks that an answer with status 404 that ends early says nothing, also if nothing of its body arrives.
func TestHalfAnAbsence(t *testing.T) {
	for name, body := range map[string]string{"no body": "", "a part of a Status": `{"kind":"Status",`, "all but the last byte": "404 page not found"} {
		o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond}}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)+1))
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, body)
		})
		r := newRun(o, vedette.Operation{Args: vedette.GetArgs{Target: configMapX}}, request.Control{})
		_, _, err := r.Send(t.Context(), request.Request{Path: "/openapi/v3/apis/example.com/v1"})
		if request.StatusCode(err) != http.StatusNotFound || request.IsNotFound(err) || request.IsPathNotFound(err) || request.IsKindNotFound(err) || !strings.Contains(fmt.Sprint(err), "ended early") {
			t.Errorf("%s: got %v (path %v, kind %v), want that it says nothing", name, err, request.IsPathNotFound(err), request.IsKindNotFound(err))
		}
	}
}

// TestAnotherAnswerIsNotAnAbsence checks that a deletion does not end because something answers 200 with another document than the object.
func TestAnotherAnswerIsNotAnAbsence(t *testing.T) {
	for _, body := range []string{`{}`, `{"message":"sign in"}`, `{"kind":"Status","status":"Success"}`, strings.Replace(objectOfX, `"name":"x"`, `"name":"y"`, 1),
		strings.Replace(objectOfX, `"uid":"u",`, "", 1)} {
		var isDeleted atomic.Bool
		o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodDelete:
				isDeleted.Store(true)
				fmt.Fprint(w, objectOfX)
			case isDeleted.Load():
				fmt.Fprint(w, body)
			default:
				fmt.Fprint(w, objectOfX)
			}
		})
		for _, args := range []vedette.DeleteArgs{{Target: configMapX}, {Target: configMapX, KnownUID: "u"}} {
			var out vedette.Outcome
			for limit := 500 * time.Millisecond; out.State != vedette.Done && !strings.Contains(out.Message, "is not the object") && limit < time.Minute; limit *= 4 {
				isDeleted.Store(false) // a busy machine may not come so far in time
				out = o.Execute(t.Context(), vedette.Operation{Args: args, Deadline: time.Now().Add(limit)})
			}
			if out.State == vedette.Done || !strings.Contains(out.Message, "is not the object") {
				t.Errorf("%s: got %s %d %s: %s", body, out.State, out.Status, out.Reason, out.Message)
			}
		}
		isDeleted.Store(true) // it answers so from the beginning
		if out := o.Execute(t.Context(), vedette.Operation{Args: vedette.DeleteArgs{Target: configMapX, MissingOK: true}, Deadline: time.Now().Add(500 * time.Millisecond)}); out.State == vedette.Done {
			t.Errorf("%s before the deletion: got %s %d %s", body, out.State, out.Status, out.Message)
		}
	}
}

// TestAnotherAnswerIsNotAnEmptyList checks that a list is not taken for empty because something answers 200 with another document.
func TestAnotherAnswerIsNotAnEmptyList(t *testing.T) {
	collection := vedette.Target{Kind: "ConfigMap", APIVersion: "v1", Namespace: "n"}
	for _, body := range []string{`{}`, `{"message":"sign in"}`, `{"kind":"Status","metadata":{},"status":"Success"}`, objectOfX} {
		o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond}}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		for _, args := range []vedette.Args{vedette.ListArgs{Target: collection}, vedette.DeleteArgs{Target: collection, All: true},
			vedette.PruneArgs{Kinds: []string{"core/v1/ConfigMap"}, Namespaces: []string{"n"}, All: true}} {
			_, out := readAll(o.Execute(t.Context(), vedette.Operation{Args: args, Deadline: time.Now().Add(time.Minute)}))
			if out.State != vedette.Failed || !strings.Contains(out.Message, "without items") {
				t.Errorf("%s, %T: got %s %d: %s", body, args, out.State, out.Status, out.Message)
			}
		}
	}
}
