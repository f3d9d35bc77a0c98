package task

import (
	"encoding/json"
	"strings"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// finish adds the last line to a task's history and sets its state.
func (t *Task) finish(state tasks.State, status string) {
	t.State = state
	t.History = append(t.History, HistoryEntry{orchestration, status})
}

// abandon ends a task without a server. The message has the reason, and what was done
// according to the history.
func (t *Task) abandon(reason string) {
	message := reason + " " + t.summarizeProgress() + " Check the cluster, then run the stage again."
	t.finish(tasks.Failed, "Orchestration failed: "+message)
	f := failure{message: message}
	t.addException(f.exception(t.lastOperation()))
}

func (t *Task) addException(e Exception) {
	raw, err := json.Marshal(e)
	if err != nil { // strings can be encoded
		panic(err)
	}
	t.Results = append(t.Results, raw)
}

// lastOperation returns the class of the operation that started last.
func (t *Task) lastOperation() string {
	for i := len(t.History) - 1; i >= 0; i-- {
		if class, ok := strings.CutPrefix(t.History[i].Status, "Processing op: "); ok {
			return class
		}
	}
	return ""
}

// maxDoneSteps bounds the steps in the message of an abandoned task.
const maxDoneSteps = 20

// summarizeProgress returns what was done and what was in progress, according to the history.
func (t *Task) summarizeProgress() string {
	var completed []string
	current := "the beginning"
	for _, line := range t.History {
		if line.Phase == orchestration {
			continue
		}
		current = line.Status
		if strings.Contains(current, "successfully") || strings.Contains(current, "succeeded") {
			completed = append(completed, strings.TrimSpace(current))
		}
	}
	summary := "nothing according to the history"
	if n := len(completed) - maxDoneSteps; n > 0 {
		completed = append([]string{"…"}, completed[n:]...)
	}
	if completed != nil {
		summary = strings.Join(completed, "; ")
	}
	return "Done so far: " + summary + ". Last step: " + strings.TrimRight(current, ". ") + "."
}

// trimForStorage removes manifests from the results, and the outputs, if the database rejects
// the task.
func (t *Task) trimForStorage() {
	t.Outputs = nil
	for i, raw := range t.Results {
		var result map[string]json.RawMessage
		if exactjson.Unmarshal(raw, &result, bodyLimits) != nil || result["manifests"] == nil {
			continue
		}
		result["manifests"] = json.RawMessage("[]")
		if trimmed, err := json.Marshal(result); err == nil {
			t.Results[i] = trimmed
		}
	}
}
