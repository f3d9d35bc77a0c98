package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// taskDuration is how long an operation takes.
const taskDuration = 200 * time.Millisecond

// Run is one operation that the stand-in ran.
type Run struct {
	RequestID, Operation, Account string
	At                            time.Time
}

// taskLog has all tasks and what they ran.
type taskLog struct {
	mu        sync.Mutex
	runs      []Run
	byRequest map[string]string // id of the task by clientRequestId
	tasks     map[string]task
}

type task struct {
	id      string
	started time.Time
	history []string
}

// Runs returns what the stand-in ran.
func (s *Server) Runs() []Run {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return slices.Clone(s.log.runs)
}

// submit runs operations. A request with the clientRequestId of an earlier one runs nothing, and gets the
// same task.
func (s *Server) submit(r *http.Request, now snapshot) Answer {
	var operations []map[string]struct{ Account, Credentials string }
	if err := json.NewDecoder(r.Body).Decode(&operations); err != nil {
		return failure(http.StatusBadRequest, "Failed to read request: "+err.Error())
	}
	requestID := r.URL.Query().Get("clientRequestId")
	runs := []Run{}
	for _, operation := range operations {
		for name, description := range operation {
			account := description.Account + description.Credentials
			if !slices.ContainsFunc(now.accounts, func(a Account) bool { return a.Name == account }) {
				return failure(http.StatusBadRequest, fmt.Sprintf("Could not find account %q", account))
			}
			runs = append(runs, Run{requestID, name, account, time.Now()})
		}
	}
	return s.log.start(requestID, runs)
}

func (l *taskLog) start(requestID string, runs []Run) Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, isRepeated := l.byRequest[requestID]
	if requestID == "" || !isRepeated {
		id = ulid.Make().String()
		t := task{id: id, started: time.Now()}
		for _, run := range runs {
			t.history = append(t.history, "Processing op: "+run.Operation)
		}
		l.byRequest[requestID], l.tasks[id] = id, t
		l.runs = append(l.runs, runs...)
	}
	return answerJSON(map[string]any{"id": id, "resourceUri": "/task/" + id})
}

func (s *Server) task(r *http.Request, _ snapshot) Answer {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	t, ok := s.log.tasks[r.PathValue("id")]
	if !ok {
		return notFound("Task not found (id: " + r.PathValue("id") + ")")
	}
	return answerJSON(t.view())
}

func (s *Server) tasks(*http.Request, snapshot) Answer {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	views := []any{}
	for _, t := range s.log.tasks {
		if time.Since(t.started) < taskDuration {
			views = append(views, t.view())
		}
	}
	return answerJSON(views)
}

func (t task) view() map[string]any {
	isCompleted := time.Since(t.started) >= taskDuration
	history := []any{map[string]any{"phase": "ORCHESTRATION", "status": "Initializing Orchestration Task"}}
	for _, line := range t.history {
		history = append(history, map[string]any{"phase": "ORCHESTRATION", "status": line})
	}
	status := "Running"
	if isCompleted {
		status = "Orchestration completed."
		history = append(history, map[string]any{"phase": "ORCHESTRATION", "status": status})
	}
	return map[string]any{"history": history, "id": t.id, "ownerId": Name, "resultObjects": []any{}, "sagaIds": []any{}, "startTimeMs": t.started.UnixMilli(),
		"status": map[string]any{"complete": isCompleted, "completed": isCompleted, "failed": false, "phase": "ORCHESTRATION", "retryable": false,
			"status": status}}
}
