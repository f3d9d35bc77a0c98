package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/internal/fair"
)

// newFakeOperator returns an operator for an API server that is a function. It serves ConfigMaps.
func newFakeOperator(t *testing.T, cfg Config, answer http.HandlerFunc) *Operator {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1" {
			fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]},{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["list","watch"]}]}`)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}]}`, server.URL)
	cluster, err := kube.Connect(kube.Access{KubeconfigContents: []byte(kubeconfig)}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	o, err := New(cluster, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var configMapX = vedette.Target{Kind: "ConfigMap", APIVersion: "v1", Namespace: "n", Name: "x"}

const objectOfX = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"x","uid":"u","resourceVersion":"5"}}`

// TestDeadlineIsCheckedBeforeEachChange lets the deadline pass, by the server's clock, before the first, the second or the
// third request that changes something. No further one is sent, and reads are not affected.
func TestDeadlineIsCheckedBeforeEachChange(t *testing.T) {
	for allowed, want := range []string{"It had no effect: no request that changes something was sent", "but an earlier one of the operation was", "", ""} {
		var changes, asked int
		o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond}}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				fmt.Fprint(w, objectOfX)
				return
			}
			if changes++; changes < 3 {
				w.WriteHeader(http.StatusTooManyRequests) // it is retried
				return
			}
			fmt.Fprint(w, objectOfX)
		})
		late := fmt.Errorf("the deadline passed 58s ago: %w", context.DeadlineExceeded)
		control := request.Control{MayChange: func(context.Context) error {
			if asked++; asked > allowed {
				return late
			}
			return nil
		}}
		op := vedette.Operation{Args: vedette.PatchArgs{Target: configMapX, Type: vedette.MergePatch, Patch: []byte(`{"data":{"a":"b"}}`)}}
		out := o.ExecuteControlled(t.Context(), op, control)
		switch {
		case allowed < 3 && (changes != allowed || out.State != vedette.Failed || out.Status != http.StatusGatewayTimeout || !strings.Contains(out.Message, "58s ago") || !strings.Contains(out.Message, want)):
			t.Errorf("after %d requests: got %d, %s %d %s, want %q", allowed, changes, out.State, out.Status, out.Message, want)
		case allowed == 3 && out.State != vedette.Done:
			t.Errorf("in time: got %s %s", out.State, out.Message)
		}
	}
	o := newFakeOperator(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, objectOfX) })
	never := request.Control{MayChange: func(context.Context) error { return errors.New("asked") }}
	for _, op := range []vedette.Operation{{Args: vedette.GetArgs{Target: configMapX}}, {DryRun: true, Args: vedette.DeleteArgs{Target: configMapX}}} {
		if out := o.ExecuteControlled(t.Context(), op, never); out.State != vedette.Done {
			t.Errorf("%s: got %s", op.Args.Verb(), out.Message)
		}
	}
}

// TestRejectedCredentialsAskAgain checks the second attempt after rejected credentials, which the transport makes.
func TestRejectedCredentialsAskAgain(t *testing.T) {
	requests, asked := 0, 0
	o := newFakeOperator(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // of the object before the change, for the record
			requests++
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	control := request.Control{MayChange: func(context.Context) error {
		if asked++; asked > 1 {
			return context.DeadlineExceeded
		}
		return nil
	}}
	op := vedette.Operation{Args: vedette.PatchArgs{Target: configMapX, Type: vedette.MergePatch, Patch: []byte(`{"data":{"a":"b"}}`)}}
	if out := o.ExecuteControlled(t.Context(), op, control); requests != 1 || out.Status != http.StatusGatewayTimeout {
		t.Errorf("got %d requests, %d %s", requests, out.Status, out.Message)
	}
}

// page returns a page of a list.
func page(token string, items ...string) string {
	return fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":%q},"items":[%s]}`, token, strings.Join(items, ","))
}

// TestListsThatDoNotEnd checks continue tokens that lead nowhere, by the verbs that list.
func TestListsThatDoNotEnd(t *testing.T) {
	pages := 0
	for name, answer := range map[string]func() string{
		"a repeated token":        func() string { return page("again", objectOfX) },
		"a long token":            func() string { return page(strings.Repeat("x", 16<<10+1), objectOfX) },
		"pages without an object": func() string { pages++; return page(fmt.Sprint(pages)) },
		"tokens that expire":      func() string { return page("expired", objectOfX) },
	} {
		requests := 0
		o := newFakeOperator(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			if requests++; r.URL.Query().Get("continue") == "expired" && requests < 1_000 {
				w.WriteHeader(http.StatusGone)
			}
			fmt.Fprint(w, answer())
		})
		target := vedette.Target{Kind: "ConfigMap", APIVersion: "v1", Namespace: "n"}
		for _, args := range []vedette.Args{vedette.ListArgs{Target: target}, vedette.DeleteArgs{Target: target, All: true},
			vedette.PruneArgs{Kinds: []string{"core/v1/ConfigMap"}, Namespaces: []string{"n"}, All: true},
			vedette.VersionArgs{Manifest: []byte(objectOfX)}} {
			if out := o.Execute(t.Context(), vedette.Operation{Args: args}); out.State != vedette.Failed || !strings.Contains(out.Message, "does not end") || out.More != nil {
				t.Errorf("%s of %s: got %s %.200s", args.Verb(), name, out.State, out.Message)
			}
			if requests > 200 {
				t.Errorf("%s of %s: got %d requests", args.Verb(), name, requests)
			}
			requests = 0
		}
	}
}

// readAll reads the rest of an outcome.
func readAll(out vedette.Outcome) (objects []json.RawMessage, end vedette.Outcome) {
	objects = out.Objects
	if out.More == nil {
		return objects, out
	}
	defer out.More.Close()
	for {
		raw, err := out.More.Next()
		if raw == nil {
			if err.Error() == "EOF" {
				return objects, out
			}
			return objects, out.More.Failure(err)
		}
		objects = append(objects, append(json.RawMessage(nil), raw...))
	}
}

// TestLongListsAreWholeOrFail checks lists that are longer than what is kept: whole, with a token that expires before or after objects
// have been sent, and with an end in the middle of a page.
func TestLongListsAreWholeOrFail(t *testing.T) {
	object := func(i, bytes int) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"n","name":"x%d","uid":"u%d","resourceVersion":"5"},"data":{"a":"%s"}}`, i, i, strings.Repeat("x", bytes))
	}
	expired := `{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}`
	for _, tt := range []struct {
		name    string
		size    int      // of an object
		pages   []string // their objects, or how they fail
		objects int
		status  int
	}{
		{"a short list", 10, []string{"3", "3", "1"}, 7, 200},
		{"a long list", 200_000, []string{"3", "3", "1"}, 7, 200},
		{"an expired token", 10, []string{"3", "expired", "2", "2"}, 4, 200},
		{"an expired token of a long list", 200_000, []string{"4", "expired", "4"}, 4, 410},
		{"a page that breaks off", 200_000, []string{"4", "broken"}, 5, 503},
	} {
		n := 0
		o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond}}, func(w http.ResponseWriter, r *http.Request) {
			what := tt.pages[min(n, len(tt.pages)-1)]
			n++
			switch token := fmt.Sprint(n); what {
			case "expired":
				w.WriteHeader(http.StatusGone)
				fmt.Fprint(w, expired)
			case "broken":
				fmt.Fprint(w, strings.TrimSuffix(page("", object(9, tt.size), ""), "]}"))
			default:
				if n == len(tt.pages) {
					token = ""
				}
				var count int
				_, _ = fmt.Sscan(what, &count)
				var items []string
				for i := range count {
					items = append(items, object(10*n+i, tt.size))
				}
				fmt.Fprint(w, page(token, items...))
			}
		})
		line := fair.NewSplit(fair.Config{}, fair.Config{Capacity: 64 << 20}, 0)
		memory := line.TryAcquire("a", 1)
		op := vedette.Operation{Args: vedette.ListArgs{Target: vedette.Target{Kind: "ConfigMap", APIVersion: "v1", Namespace: "n"}}}
		objects, end := readAll(o.ExecuteControlled(t.Context(), op, request.Control{Memory: memory}))
		if len(objects) != tt.objects || end.Status != tt.status || (end.State == vedette.Done) != (tt.status == 200) {
			t.Errorf("%s: got %d objects, %s %d %s, want %d, %d", tt.name, len(objects), end.State, end.Status, end.Message, tt.objects, tt.status)
		}
		if used := memory.Units(); used > 3*maxBufferedList { // what was kept of the beginning
			t.Errorf("%s: got %d bytes held at the end", tt.name, used)
		}
	}
}

// TestRequestsReleaseTheirMemory checks that an operation with many requests holds the memory of the last answers only:
// one that waits, one that deletes or prunes many objects, and one whose request is retried.
func TestRequestsReleaseTheirMemory(t *testing.T) {
	const objects = 40
	large := strings.Replace(objectOfX, `"uid"`, `"managedFields":[`+strings.Repeat(`{"a":{}},`, 1_000)+`{}],"uid"`, 1)
	oneAnswer := 4 * request.DecodedSize([]byte(large), request.DecodedAsTree)
	var items []string
	for i := range objects {
		items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"n","name":"x%d","uid":"u","annotations":{"kubectl.kubernetes.io/last-applied-configuration":""}}}`, i))
	}
	refused := 0
	o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/configmaps"):
			fmt.Fprint(w, page("", items...))
		case r.Method == http.MethodPatch && refused < objects:
			refused++
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(w, `{"kind":"Status","status":"Failure","code":429,"message":"%s"}`, strings.Repeat("x", 100_000))
		default:
			fmt.Fprint(w, large) // it is never gone
		}
	})
	collection := vedette.Target{Kind: "ConfigMap", APIVersion: "v1", Namespace: "n"}
	for name, args := range map[string]vedette.Args{
		"a deletion that waits": vedette.DeleteArgs{Target: configMapX},
		"many deletions":        vedette.DeleteArgs{Target: collection, All: true, NoWait: true},
		"a prune":               vedette.PruneArgs{Kinds: []string{"core/v1/ConfigMap"}, Namespaces: []string{"n"}, All: true},
		"a patch with retries":  vedette.PatchArgs{Target: configMapX, Type: vedette.MergePatch, Patch: []byte(`{"data":{"a":"b"}}`)},
	} {
		line := fair.NewSplit(fair.Config{}, fair.Config{Capacity: 64 << 20, Share: 40 << 20}, 0)
		memory := line.TryAcquire("a", 1)
		op := vedette.Operation{Args: args, Deadline: time.Now().Add(2 * time.Second)}
		out := o.ExecuteControlled(t.Context(), op, request.Control{Memory: memory})
		if out.Status == http.StatusRequestEntityTooLarge || memory.Units() > oneAnswer {
			t.Errorf("%s: got %d %.200s, with %d bytes at the end; one answer takes %d", name, out.Status, out.Message, memory.Units(), oneAnswer)
		}
	}
}
