package clouddriver

import (
	"encoding/json"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

// taskView is a task as Orca and Deck read it.
type taskView struct {
	ID            string            `json:"id"`
	Status        taskStatus        `json:"status"`
	History       []task.Line       `json:"history"`
	ResultObjects []json.RawMessage `json:"resultObjects"`
	Outputs       []task.Output     `json:"outputs"`
	SagaIDs       []string          `json:"sagaIds"` // of providers that have sagas
	Retryable     bool              `json:"retryable"`
	StartTimeMs   int64             `json:"startTimeMs"`
}

type taskStatus struct {
	Phase     string `json:"phase"`
	Status    string `json:"status"`
	Complete  bool   `json:"complete"`
	Completed bool   `json:"completed"`
	Failed    bool   `json:"failed"`
	Retryable bool   `json:"retryable"`
}

func viewTask(t task.Task) taskView {
	v := taskView{ID: t.ID, History: t.History, ResultObjects: []json.RawMessage{}, Outputs: []task.Output{}, SagaIDs: []string{},
		Retryable: t.Retryable(), StartTimeMs: t.Started.UnixMilli()}
	v.Status = taskStatus{Complete: !t.Running(), Completed: !t.Running(), Failed: t.Failed(), Retryable: t.Retryable()}
	if n := len(t.History); n > 0 {
		v.Status.Phase, v.Status.Status = t.History[n-1].Phase, t.History[n-1].Status
	}
	v.Outputs = append(v.Outputs, t.Outputs...)
	for _, raw := range t.Results {
		v.ResultObjects = append(v.ResultObjects, asGson(raw))
	}
	return v
}

// getTask mirrors OperationsController.get.
func (a *api) getTask(w http.ResponseWriter, r *http.Request, p parts) error {
	t, err := a.Tasks.Get(r.Context(), p["id"])
	if err != nil {
		return err
	}
	return writeJSON(w, r, viewTask(t))
}

// listTasks mirrors OperationsController.list.
func (a *api) listTasks(w http.ResponseWriter, r *http.Request, _ parts) error {
	all, err := a.Tasks.List(r.Context())
	if err != nil {
		return err
	}
	views := []taskView{}
	for _, t := range all {
		views = append(views, viewTask(t))
	}
	return writeJSON(w, r, views)
}

// getOwner mirrors OperationsController.getOwnerName.
func (a *api) getOwner(w http.ResponseWriter, r *http.Request, p parts) error {
	if err := onlyKubernetes(p); err != nil {
		return err
	}
	t, err := a.Tasks.Get(r.Context(), p["id"])
	if err != nil {
		return err
	}
	return writeJSON(w, r, map[string]string{"name": task.HostOf(t.Owner)})
}

// resumeTask mirrors OperationsController.resumeTask: no task of Kubernetes has a
// saga.
func (a *api) resumeTask(w http.ResponseWriter, r *http.Request, p parts) error {
	if _, err := a.Tasks.Get(r.Context(), p["id"]); err != nil {
		return err
	}
	return vedette.Errorf(vedette.NotFound, "No saga was found for this task id: %s - can't resume", p["id"])
}
