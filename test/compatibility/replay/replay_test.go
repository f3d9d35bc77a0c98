package replay_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
	"github.com/vedette-io/vedette/test/compatibility/replay"
)

func results(checks []replay.Check) string {
	var lines []string
	for _, c := range checks {
		lines = append(lines, fmt.Sprintf("%s: want %s, got %s, skipped %q, ok %v", c.Request, c.Want, c.Got, c.Skipped, c.IsOK()))
	}
	return strings.Join(lines, "\n")
}

// TestRequestsOfOrcaAreReplayed replays a deployment of a generated name, a read of it, and a task that fails.
func TestRequestsOfOrcaAreReplayed(t *testing.T) {
	const id = "01J00000000000000000000000"
	polls, failing := 0, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "POST":
			failing = polls > 1
			fmt.Fprintf(w, `{"id":%q}`, id)
		case r.URL.Path == "/task/"+id:
			polls++
			fmt.Fprintf(w, `{"status":{"completed":%v,"failed":%v,"status":"words"},"resultObjects":[{"manifestNamesByNamespace":{"n":["configMap made-zzzzz"]}}]}`, polls > 1, failing)
		case r.URL.Path == "/manifests/prod/n/configMap made-zzzzz":
			fmt.Fprint(w, `{"account":1,"name":1,"location":1,"moniker":1,"manifest":1,"status":1,"artifacts":[],"events":[],"warnings":[],"metrics":[]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	calls := `{"method":"POST","path":"/kubernetes/ops","status":200,"request":"[{\"deployManifest\":{}}]","response":85}
{"method":"GET","path":"/task/other","status":200,"response":9}
{"method":"GET","path":"/manifests/prod/n/configMap%20made-aaaaa","status":200,"response":99}
{"method":"GET","path":"/applications/a","status":404,"response":"No handler found"}
{"method":"POST","path":"/kubernetes/ops","status":200,"request":"[{\"deployManifest\":{","response":85}
{"method":"POST","path":"/kubernetes/ops","status":200,"request":"[{\"deployManifest\":{}}]","response":85}
{"method":"POST","path":"/kubernetes/ops","status":200,"request":"[{\"scaleManifest\":{}}]","response":85}
`
	pipelines := `{"stages":[{"type":"deployManifest","tasks":[["deployManifest","SUCCEEDED"],["monitorDeploy","SUCCEEDED"],["monitorCleanup","NOT_STARTED"]]}]}
{"stages":[{"type":"deployManifest","tasks":[["monitorDeploy","SUCCEEDED"]]},{"type":"deployManifest","tasks":[["monitorDeploy","SUCCEEDED"]]}]}
`
	checks, err := replay.Orca(t.Context(), server.URL, strings.NewReader(calls), strings.NewReader(pipelines))
	if err != nil {
		t.Fatal(err)
	}
	const want = `POST deployManifest: want 200, the task succeeded, got 200, the task succeeded, skipped "", ok true
GET /manifests/prod/n/configMap%20made-aaaaa: want 200, got 200, skipped "", ok true
GET /applications/a: want 404, got , skipped "the recorded server did not have the endpoint", ok true
POST deployManifest: want 200, the task succeeded, got , skipped "the recorded request is cut", ok true
POST deployManifest: want 200, the task succeeded, got 200, the task failed: words, skipped "", ok false
POST scaleManifest: want 200, the task failed, got , skipped "the recording does not tell how the task ended", ok true`
	if got := results(checks); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var out strings.Builder
	if replay.Print(&out, "orca", checks) || !strings.Contains(out.String(), "6 requests: 2 as recorded, 0 accepted, 1 different, 3 left out") {
		t.Errorf("got\n%s\nwant one difference", out.String())
	}
}

// TestRequestsOfDeckAreAsked checks what is asked for requests of Deck.
func TestRequestsOfDeckAreAsked(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		if r.URL.Path == "/tags" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, "[]")
	}))
	defer server.Close()
	var lines strings.Builder
	for _, path := range []string{"/credentials", "/applications/shop?expand=true", "/applications/shop/clusters/prod/a%20b/serverGroups/c%20d", "/loadBalancers?provider=kubernetes",
		"/firewalls", "/securityGroups/prod/shop/x?provider=kubernetes", "/securityGroups/prod", "/projects", "/applications/shop/tasks"} {
		fmt.Fprintf(&lines, "200\t%s\t[]\n", path)
	}
	lines.WriteString("500\t/tags\t{}\n200\t/networks\t{\"a\":1}\n")
	rules := compare.Rules{{Form: "/vpcs", Field: "status 404/200", Reason: "there are none"}}
	lines.WriteString("404\t/vpcs\t{}\n404\t/keyPairs\t{}\n")
	checks, err := replay.Gate(t.Context(), server.URL, strings.NewReader(lines.String()), rules)
	if err != nil {
		t.Fatal(err)
	}
	const want = "/credentials /applications/shop /applications/shop/clusters/prod/a%20b/kubernetes/serverGroups/c%20d /kubernetes/loadBalancers /securityGroups /securityGroups/prod/kubernetes/shop/x /tags /networks /vpcs /keyPairs"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	var different []string
	for _, c := range checks {
		if !c.IsOK() {
			different = append(different, c.Request)
		}
	}
	if fmt.Sprint(different) != "[GET /networks GET /keyPairs]" {
		t.Errorf("got differences %v, want those of /networks and /keyPairs\n%s", different, results(checks))
	}
}

func TestRequestsOfUsersAreReplayed(t *testing.T) {
	fiat := httptest.NewServer(replay.FiatHandler())
	defer fiat.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && r.Header.Get("X-SPINNAKER-USER") != "boss" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer server.Close()
	recorded := "boss\tPOST /kubernetes/ops \"scaleManifest\":{\"account\":\"locked\",\"manifes\t200\t{}\ntester\tPOST /kubernetes/ops \"scaleManifest\":{\"account\":\"prod\"\t200\t\n-\t/credentials\t200\t[]\nnobody\t/x\t000\t\n"
	checks, err := replay.Fiat(t.Context(), server.URL, strings.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(checks[0].IsOK(), checks[1].IsOK(), checks[2].IsOK(), checks[3].Skipped != ""); got != "true false true true" {
		t.Errorf("got\n%s\nwant a difference of tester only", results(checks))
	}
	for user, want := range map[string]int{"tester": http.StatusOK, "nobody": http.StatusNotFound} {
		response, err := http.Get(fiat.URL + "/authorize/" + user)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("Fiat about %s: got status %d, want %d", user, response.StatusCode, want)
		}
	}
}

func TestMalformedRecordingsAreRejected(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, text := range []string{"x", "200", "x\t/y\t[]", "a\tb\tc"} {
		if _, err := replay.Gate(t.Context(), server.URL, strings.NewReader(text), nil); err == nil {
			t.Errorf("Gate: %q: got no error", text)
		}
		if _, err := replay.Fiat(t.Context(), server.URL, strings.NewReader(text)); err == nil {
			t.Errorf("Fiat: %q: got no error", text)
		}
		if _, err := replay.Orca(t.Context(), server.URL, strings.NewReader(text), strings.NewReader("")); err == nil {
			t.Errorf("Orca: %q: got no error", text)
		}
	}
}
