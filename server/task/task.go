package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// Task is the public state of a task.
type Task struct {
	ID        string // a ULID
	RequestID string // set by the client; a second submission with it returns the first task
	Owner     string // the server that runs or ran it
	User      string // who submitted it; empty if unknown
	// Accounts are the accounts of its operations. Nil if the task was stored by a version
	// that did not record them.
	Accounts []vedette.AccountName
	State    tasks.State
	History  []HistoryEntry
	Results  []json.RawMessage // Result or Exception, in the order of the operations
	Outputs  []Output          // of the newest maxOutputs changes, if they are kept
	Started  time.Time
}

// HistoryEntry is one line of a task's history.
type HistoryEntry struct {
	Phase  string `json:"phase"`
	Status string `json:"status"`
}

// Running reports whether the task has not ended.
func (t Task) Running() bool { return t.State == tasks.Running }

// Failed reports whether the task ended without success.
func (t Task) Failed() bool { return !t.Running() && t.State != tasks.Succeeded }

// Retryable reports whether the task may be run again with its ID.
func (t Task) Retryable() bool { return t.State == tasks.Retryable }

// Result is the result of an operation, as Orca reads it.
type Result struct {
	Names     map[string][]string `json:"manifestNamesByNamespace"`
	Manifests []manifest.Manifest `json:"manifests,omitzero"` // nil is omitted
	Created   []manifest.Artifact `json:"createdArtifacts"`
	Bound     []manifest.Artifact `json:"boundArtifacts"`
	Deployed  map[string][]string `json:"deployedNamesByLocation,omitempty"`
}

// newResult returns an empty result that is not nil, because Orca waits for a result in some
// stages.
func newResult() *Result {
	return &Result{Names: map[string][]string{}, Manifests: []manifest.Manifest{}, Created: []manifest.Artifact{},
		Bound: []manifest.Artifact{}}
}

// Exception is the result of an operation that failed.
type Exception struct {
	Type      string   `json:"type"` // always exceptionType
	Operation string   `json:"operation"`
	Message   string   `json:"message"`
	Cause     string   `json:"cause,omitempty"` // the cluster's message
	Details   []Detail `json:"details"`
}

const exceptionType = "EXCEPTION"

// Detail is one error message of an Exception.
type Detail struct {
	Message string `json:"message"`
}

// storedBody is the stored part of a task without its own column. It contains nothing of the
// request.
type storedBody struct {
	Accounts []vedette.AccountName `json:"accounts"`
	History  []HistoryEntry        `json:"history"`
	Results  []json.RawMessage     `json:"results"`
	Outputs  []Output              `json:"outputs,omitempty"`
	Standby  *standby              `json:"standby,omitempty"` // the copy of the task; nil if there is none
}

func (t Task) encodeBody() ([]byte, error) { return t.encodeBodyWith(nil) }

// encodeBodyWith encodes a task that runs, and of which there may be a copy.
func (t Task) encodeBodyWith(copied *standby) ([]byte, error) {
	raw, err := json.Marshal(storedBody{t.Accounts, t.History, t.Results, t.Outputs, copied})
	if err != nil {
		return nil, fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	return raw, nil
}

func decodeBody(row tasks.Task) (storedBody, error) {
	b := storedBody{Results: []json.RawMessage{}}
	if err := json.Unmarshal(row.Body, &b); err != nil {
		return b, fmt.Errorf("decode task %s: %w", row.ID, err)
	}
	return b, nil
}

func decodeTask(row tasks.Task) (Task, error) {
	b, err := decodeBody(row)
	if err != nil {
		return Task{}, err
	}
	return Task{ID: row.ID, RequestID: row.RequestID, Owner: string(row.Server), User: row.User, Accounts: b.Accounts, State: row.State,
		History: b.History, Results: b.Results, Outputs: b.Outputs, Started: row.Created}, nil
}

// OwnerHost returns the host of an owner like "7f3a…@vedette-0".
func OwnerHost(owner string) string {
	_, host, ok := strings.Cut(owner, "@")
	if !ok {
		return owner
	}
	return host
}

// notFound returns Clouddriver's error for a missing task.
func notFound(id string) error {
	return vedette.Errorf(vedette.NotFound, "Task not found (id: %s)", id)
}
