package task

import (
	"encoding/json"
	"strings"

	"github.com/vedette-io/vedette/server/store"
)

// end gives a task its last line.
func (t *Task) end(state store.TaskState, status string) {
	t.State = state
	t.History = append(t.History, Line{orchestration, status})
}

// abandon ends a task that nobody runs any more. The text says why; what was
// done is told from the history.
func (t *Task) abandon(why string) {
	text := why + " " + t.done() + " Check the cluster, then run the stage again."
	t.end(store.TaskFailed, "Orchestration failed: "+text)
	f := failure{message: text}
	t.put(f.exception(t.operation()))
}

// put keeps a result of the task as a whole.
func (t *Task) put(e Exception) {
	raw, err := json.Marshal(e)
	if err != nil { // texts can be encoded
		panic(err)
	}
	t.Results = append(t.Results, raw)
}

// operation returns the class of the operation that had its turn last.
func (t *Task) operation() string {
	for i := len(t.History) - 1; i >= 0; i-- {
		if class, ok := strings.CutPrefix(t.History[i].Status, "Processing op: "); ok {
			return class
		}
	}
	return ""
}

// mostDone is how many deeds an abandoned task tells of.
const mostDone = 20

// done tells what the history says was done, and what was going on.
func (t *Task) done() string {
	var deeds []string
	current := "the beginning"
	for _, line := range t.History {
		if line.Phase == orchestration {
			continue
		}
		current = line.Status
		if strings.Contains(current, "successfully") || strings.Contains(current, "succeeded") {
			deeds = append(deeds, strings.TrimSpace(current))
		}
	}
	said := "nothing that the history tells of"
	if n := len(deeds) - mostDone; n > 0 {
		deeds = append([]string{"…"}, deeds[n:]...)
	}
	if deeds != nil {
		said = strings.Join(deeds, "; ")
	}
	return "Done so far: " + said + ". It was at: " + strings.TrimRight(current, ". ") + "."
}

// shorten leaves out what the results hold of manifests, and the outputs, for a
// database that does not take the whole.
func (t *Task) shorten() {
	t.Outputs = nil
	for i, raw := range t.Results {
		var result map[string]json.RawMessage
		if json.Unmarshal(raw, &result) != nil || result["manifests"] == nil {
			continue
		}
		result["manifests"] = json.RawMessage("[]")
		if short, err := json.Marshal(result); err == nil {
			t.Results[i] = short
		}
	}
}
