package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store"
)

// Task is what can be read of a task.
type Task struct {
	ID        string // a ULID
	RequestID string // of whoever submitted it; a second submission under it is the first
	Owner     string // the server that runs it, or did
	User      string // on whose behalf it was submitted; empty where nobody said
	// Accounts are those that its operations name. Nil: a server that did not note
	// them has stored the task.
	Accounts []vedette.AccountName
	State    store.TaskState
	History  []HistoryEntry
	Results  []json.RawMessage // Result and Exception, in the order of the operations
	Outputs  []Output          // of the newest maxOutputs changes, where they are kept
	Started  time.Time
}

// HistoryEntry is one entry of a task's history.
type HistoryEntry struct {
	Phase  string `json:"phase"`
	Status string `json:"status"`
}

// Running reports whether the task goes on.
func (t Task) Running() bool { return t.State == store.TaskRunning }

// Failed reports whether the task ended without success.
func (t Task) Failed() bool { return !t.Running() && t.State != store.TaskSucceeded }

// Retryable reports whether the task may be run again under its ID.
func (t Task) Retryable() bool { return t.State == store.TaskRetryable }

// Result is what an operation made, as Orca reads it.
type Result struct {
	Names     map[string][]string `json:"manifestNamesByNamespace"`
	Manifests []manifest.Manifest `json:"manifests,omitzero"` // nil: none are told
	Created   []manifest.Artifact `json:"createdArtifacts"`
	Bound     []manifest.Artifact `json:"boundArtifacts"`
	Deployed  map[string][]string `json:"deployedNamesByLocation,omitempty"`
}

// newResult returns a result that is there though it is empty: Orca waits for
// one where a stage expects it.
func newResult() *Result {
	return &Result{Names: map[string][]string{}, Manifests: []manifest.Manifest{}, Created: []manifest.Artifact{}, Bound: []manifest.Artifact{}}
}

// Exception is the result of an operation that failed.
type Exception struct {
	Type      string   `json:"type"` // EXCEPTION
	Operation string   `json:"operation"`
	Message   string   `json:"message"`
	Cause     string   `json:"cause,omitempty"` // the cluster's own words
	Details   []Detail `json:"details"`
}

// Detail is one message of an Exception.
type Detail struct {
	Message string `json:"message"`
}

// storedBody is what is stored of a task besides its columns. It holds nothing of what
// was submitted.
type storedBody struct {
	Accounts []vedette.AccountName `json:"accounts"`
	History  []HistoryEntry        `json:"history"`
	Results  []json.RawMessage     `json:"results"`
	Outputs  []Output              `json:"outputs,omitempty"`
}

func (t Task) encodeBody() ([]byte, error) {
	raw, err := json.Marshal(storedBody{t.Accounts, t.History, t.Results, t.Outputs})
	if err != nil {
		return nil, fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	return raw, nil
}

// decodeTask reads a stored task.
func decodeTask(row store.TaskRow) (Task, error) {
	b := storedBody{Results: []json.RawMessage{}}
	if err := json.Unmarshal(row.Body, &b); err != nil {
		return Task{}, fmt.Errorf("decode task %s: %w", row.ID, err)
	}
	return Task{ID: row.ID, RequestID: row.RequestID, Owner: string(row.Server), User: row.User, Accounts: b.Accounts, State: row.State,
		History: b.History, Results: b.Results, Outputs: b.Outputs, Started: row.Created}, nil
}

// OwnerHost returns the host in a task's owner, "7f3a…@vedette-0".
func OwnerHost(owner string) string {
	_, host, ok := strings.Cut(owner, "@")
	if !ok {
		return owner
	}
	return host
}

// notFound is Clouddriver's text.
func notFound(id string) error {
	return vedette.Errorf(vedette.NotFound, "Task not found (id: %s)", id)
}
