package clouddriver

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// taskView is a task as Orca and Deck read it.
type taskView struct {
	ID            string              `json:"id"`
	OwnerID       string              `json:"ownerId,omitempty"` // the server that runs or ran it
	Status        taskStatus          `json:"status"`
	History       []task.HistoryEntry `json:"history"`
	ResultObjects []json.RawMessage   `json:"resultObjects"`
	Outputs       []task.Output       `json:"outputs"`
	SagaIDs       []string            `json:"sagaIds"` // always empty: only other providers have sagas
	Retryable     bool                `json:"retryable"`
	StartTimeMs   int64               `json:"startTimeMs"`
}

type taskStatus struct {
	Phase     string `json:"phase"`
	Status    string `json:"status"`
	Complete  bool   `json:"complete"`
	Completed bool   `json:"completed"`
	Failed    bool   `json:"failed"`
	Retryable bool   `json:"retryable"`
}

func newTaskView(t task.Task) taskView {
	v := taskView{ID: t.ID, OwnerID: t.Owner, History: t.History, ResultObjects: []json.RawMessage{}, Outputs: []task.Output{},
		SagaIDs: []string{}, Retryable: t.Retryable(), StartTimeMs: t.Started.UnixMilli()}
	v.Status = taskStatus{Complete: !t.Running(), Completed: !t.Running(), Failed: t.Failed(), Retryable: t.Retryable()}
	if n := len(t.History); n > 0 {
		v.Status.Phase, v.Status.Status = t.History[n-1].Phase, t.History[n-1].Status
	}
	v.Outputs = append(v.Outputs, t.Outputs...)
	for _, raw := range t.Results {
		v.ResultObjects = append(v.ResultObjects, web.AsGson(raw))
	}
	return v
}

// getTask mirrors OperationsController.get.
func (a *api) getTask(w http.ResponseWriter, r *http.Request, p web.Params) error {
	t, release, err := readlimit.Read(r.Context(), a.ReadLimiter, readlimit.CallerOf(r), func() (task.Task, int64, error) {
		t, err := a.readTask(r, p["id"])
		return t, taskCost(t), err
	})
	if err != nil {
		return err
	}
	defer release()
	return rest.WriteJSON(w, r, newTaskView(t))
}

// taskCost is the memory that a task needs in a response. Its results contain manifests, and its history and
// outputs quote clusters.
func taskCost(t task.Task) (bytes int64) {
	for _, result := range t.Results {
		bytes += int64(len(result))
	}
	for _, line := range t.History {
		bytes += int64(len(line.Phase) + len(line.Status))
	}
	for _, o := range t.Outputs {
		bytes += int64(len(o.Manifest) + len(o.Phase) + len(o.StdOut) + len(o.StdError))
	}
	return web.ObjectCopies * bytes
}

// listTasks mirrors OperationsController.list. Tasks that the caller may not read are left
// out.
func (a *api) listTasks(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), tasks.MaxBytes)
	if err != nil {
		return err
	}
	defer release()
	all, err := a.readableTasks(r)
	if err != nil {
		return err
	}
	views := []taskView{}
	for _, t := range all {
		views = append(views, newTaskView(t))
	}
	return rest.WriteJSON(w, r, views)
}

// getOwner mirrors OperationsController.getOwnerName.
func (a *api) getOwner(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if err := checkProvider(p); err != nil {
		return err
	}
	t, err := a.readTask(r, p["id"])
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, map[string]string{"name": task.OwnerHost(t.Owner)})
}

// resumeTask mirrors OperationsController.resumeTask. Tasks of Kubernetes have no sagas.
func (a *api) resumeTask(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if _, err := a.readTask(r, p["id"]); err != nil {
		return err
	}
	return vedette.Errorf(vedette.NotFound, "No saga was found for this task id: %s - can't resume", p["id"])
}

// readTask returns a task that the caller may read. The user who submitted it may read it
// without a check, because Orca polls running stages every few seconds, and a short outage of
// Fiat must not fail them. Other users need READ of each account.
func (a *api) readTask(r *http.Request, id string) (task.Task, error) {
	t, err := a.Tasks.Get(r.Context(), id)
	caller := authorize.CallerOf(r)
	if err != nil || isSubmitter(t, caller) {
		return t, err
	}
	return t, t.CheckAccess(r.Context(), func(ctx context.Context, account vedette.AccountName) error {
		return a.Authorizer.CheckAccount(ctx, caller, account, authorize.Read)
	})
}

func isSubmitter(t task.Task, c authorize.Caller) bool {
	return cmp.Or(t.User, authorize.Anonymous) == c.User
}

// readableTasks returns the running tasks that the caller may read.
func (a *api) readableTasks(r *http.Request) ([]task.Task, error) {
	all, err := a.Tasks.List(r.Context())
	if err != nil {
		return nil, err
	}
	caller := authorize.CallerOf(r)
	canRead, err := a.Authorizer.Readable(r.Context(), caller)
	if err != nil || canRead == nil {
		return all, err
	}
	return slices.DeleteFunc(all, func(t task.Task) bool { //nolint:contextcheck // it takes the context of the request
		return !isSubmitter(t, caller) && t.CheckAccess(r.Context(), func(_ context.Context, account vedette.AccountName) error {
			if !canRead(account) {
				return vedette.Errorf(vedette.Denied, "Access is denied")
			}
			return nil
		}) != nil
	}), nil
}

// checkTaskWriteAccess checks WRITE for each account of a task, because a canceled task can
// leave a cluster in an intermediate state.
func (a *api) checkTaskWriteAccess(r *http.Request, id string) error {
	t, err := a.Tasks.Get(r.Context(), id)
	if err != nil {
		return err
	}
	caller := authorize.CallerOf(r)
	return t.CheckAccess(r.Context(), func(ctx context.Context, account vedette.AccountName) error {
		return a.Authorizer.CheckAccount(ctx, caller, account, authorize.Write)
	})
}
