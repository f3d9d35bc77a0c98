package clouddriver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store/history"
)

// TestOperationsHaveScaleAgentsFormat shows operations in the Scale Agent's format: one that is done, one
// that the cluster rejected, one that is lost, one without an agent, and one that is running.
func TestOperationsHaveScaleAgentsFormat(t *testing.T) {
	w := readtest.New(t)
	for i, end := range []history.Operation{
		{State: vedette.Done, Status: 200, Agent: "agent-1"}, {State: vedette.Failed, Status: 403, Agent: "agent-1"},
		{State: vedette.Lost, Status: 504, Agent: "agent-1"}, {State: vedette.Failed, Status: 503}, {State: history.Pending},
	} {
		end.ID, end.Account, end.Server, end.Verb = vedette.OperationID(fmt.Sprintf("01J0000000000000000000000%d", i)), "prod", "server-1", vedette.VerbScale
		end.Accepted = time.UnixMilli(1_000_000)
		if err := w.Store.BeginOperation(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		if end.State == history.Pending {
			continue
		}
		if end.Agent != "" {
			end.Sent = time.UnixMilli(1_000_004)
		}
		end.Ended = time.UnixMilli(1_000_050)
		if err := w.Store.EndOperations(t.Context(), []history.Operation{end}); err != nil {
			t.Fatal(err)
		}
	}
	url := serve(t, clouddriver.Config{Store: w.Store})
	_, body := get(t, url+"/armory/agent/operations")
	golden.Compare(t, "testdata/operations.json", indent(t, body))
	_, one := get(t, url+"/armory/agent/operations/01J00000000000000000000000")
	if !strings.Contains(string(body), strings.TrimSpace(string(one))) {
		t.Errorf("got %s, want the same as in the list", one)
	}
	for query, want := range map[string]string{"?items=2": "43", "?items=2&page=2": "21", "?items=2&page=3": "0", "?items=2&page=4": "", "?page=2": ""} {
		if got := recordIDs(t, url+"/armory/agent/operations"+query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"?items=0", "?page=x", "?items=1001", "?page=2001"} {
		if response, body := get(t, url+"/armory/agent/operations"+query); response.StatusCode != 400 {
			t.Errorf("%s: got %d %s, want %d", query, response.StatusCode, body, 400)
		}
	}
	for range 100 { // the same error each time
		if _, body := get(t, url+"/armory/agent/operations?page=x&items=0"); !strings.Contains(string(body), "invalid items") {
			t.Fatalf("got %s, want an error about the first parameter by name", body)
		}
	}
	if response, _ := get(t, url+"/armory/agent/operations/01J00000000000000000000009"); response.StatusCode != 404 {
		t.Errorf("a missing operation: got %d, want %d", response.StatusCode, 404)
	}
	closed := serve(t, clouddriver.Config{Store: w.Store, Authorizer: grants{}})
	if got := recordIDs(t, closed+"/armory/agent/operations"); got != "" {
		t.Errorf("without permissions: got %s, want none", got)
	}
	_, missing := get(t, closed+"/armory/agent/operations/01J00000000000000000000009")
	response, hidden := get(t, closed+"/armory/agent/operations/01J00000000000000000000000")
	if withoutTime := strings.NewReplacer("00000000000009", "00000000000000"); response.StatusCode != 404 ||
		afterTime(withoutTime.Replace(string(missing))) != afterTime(string(hidden)) {
		t.Errorf("without READ: got %d %s, want as if it did not exist: %s", response.StatusCode, hidden, missing)
	}
}

// afterTime returns an error without the time that it begins with.
func afterTime(body string) string {
	_, rest, _ := strings.Cut(body, `"status"`)
	return rest
}

func recordIDs(t *testing.T, url string) string {
	t.Helper()
	_, body := get(t, url)
	var records []struct{ OperationID string }
	if err := json.Unmarshal(body, &records); err != nil {
		t.Fatalf("invalid JSON: %v: %s", err, body)
	}
	var ids string
	for _, r := range records {
		ids += r.OperationID[25:]
	}
	return ids
}
