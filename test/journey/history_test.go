package journey

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestUndoNamesTheOperation applies two versions of a Deployment and undoes the second: the history names the operation
// that the undo takes back, and has what each of them changed. Then it undoes a third one, and restores the second.
func TestUndoNamesTheOperation(t *testing.T) {
	h := start(t, agent.Account{Name: "one", Selection: watch.Selection{Kinds: []string{"Deployment", "ReplicaSet"}}}, redact.Config{})
	h.awaitLive(2)
	operate := func(body string) (id string) {
		t.Helper()
		answer := h.post("/vedette/v1/operations", `{"account":"one","timeout":"1m",`+body+`}`)
		var out struct{ ID, State string }
		if err := json.Unmarshal(answer, &out); err != nil || out.State != "done" {
			t.Fatalf("%s: got %s", body, answer)
		}
		return out.ID
	}
	apply := func(tag string) string {
		id := operate(fmt.Sprintf(`"verb":"apply","namespace":"default","manifest":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"undone"},"spec":{"replicas":0,
			"selector":{"matchLabels":{"a":"undone"}},"template":{"metadata":{"labels":{"a":"undone"}},"spec":{"containers":[{"name":"c","image":"example.com/undone:%s"}]}}}}`, tag))
		h.await("the ReplicaSet of "+tag, func() bool {
			return strings.Contains(string(h.read("/vedette/v1/objects?kind=replicasets&include=body")), "example.com/undone:"+tag)
		})
		return id
	}
	const target = `"kind":"deployment","namespace":"default","name":"undone"`
	apply("1")
	second := apply("2")
	operate(`"verb":"scale","replicas":1,` + target) // not what is undone
	undo := operate(`"verb":"undo",` + target)
	var entry struct {
		Undoes, User string
		Changes      []struct{ Patch json.RawMessage }
	}
	if err := json.Unmarshal(h.read("/vedette/v1/operations/"+undo), &entry); err != nil {
		t.Fatal(err)
	}
	if entry.Undoes != second || entry.User != "anonymous" || len(entry.Changes) != 1 || !strings.Contains(string(entry.Changes[0].Patch), `"example.com/undone:1"`) {
		t.Errorf("got %+v, want that it undoes %s", entry, second)
	}
	third := apply("3")
	for _, tt := range []struct{ revision, image, want string }{
		{"", "1", third},
		{`"revision":2,`, "2", undo}, // and neither the third nor the second undo, of which nothing is left
	} {
		id := operate(`"verb":"undo",` + tt.revision + target)
		if err := json.Unmarshal(h.read("/vedette/v1/operations/"+id), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Undoes != tt.want || !strings.Contains(string(entry.Changes[0].Patch), `"example.com/undone:`+tt.image) {
			t.Errorf("an undo with %q: got %+v, want that it undoes %s", tt.revision, entry, tt.want)
		}
	}
	if list := string(h.read("/vedette/v1/operations?object=deploy/undone&namespace=default&verb=undo&since=1h")); !strings.Contains(list, undo) || strings.Contains(list, second+`","account"`) {
		t.Errorf("got the list %s", list)
	}
}
