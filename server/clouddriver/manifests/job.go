package manifests

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// jobView is the state of a Job. Stages that run a Job poll it.
type jobView struct {
	Name              string              `json:"name"`
	Account           vedette.AccountName `json:"account"`
	Location          string              `json:"location"`
	Provider          string              `json:"provider"`
	CreatedTime       int64               `json:"createdTime"` // milliseconds
	Message           string              `json:"message,omitempty"`
	Reason            string              `json:"reason,omitempty"`
	FailureDetails    string              `json:"failureDetails,omitempty"`
	Pods              []jobPod            `json:"pods"`
	MostRecentPodName string              `json:"mostRecentPodName,omitempty"`
	JobState          string              `json:"jobState"`
	CompletionDetails completionDetails   `json:"completionDetails"`
}

// completionDetails has two fields that Clouddriver never sets for a Job.
type completionDetails struct {
	ExitCode string `json:"exitCode"`
	Signal   string `json:"signal"`
	Message  string `json:"message"`
	Reason   string `json:"reason"`
}

type jobPod struct {
	Name   string          `json:"name"`
	Status json.RawMessage `json:"status,omitempty"`

	startTime       string // RFC 3339
	phase           string
	containerStates []containerState
}

type containerState struct {
	Name  string `json:"name"`
	State struct {
		Terminated *struct {
			ExitCode int    `json:"exitCode"`
			Reason   string `json:"reason"`
			Message  string `json:"message"`
		} `json:"terminated"`
		Waiting *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"waiting"`
	} `json:"state"`
}

// getJob mirrors JobController.getJob.
func (a *api) getJob(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.checkJobAccess(r, scope, p["app"]); err != nil {
		return err
	}
	held := web.NewMemory(a.ReadLimiter, scope.LimitKey)
	defer held.Release()
	row, err := a.findJob(r.Context(), scope, p["id"])
	if err != nil {
		return err
	}
	pods, err := a.listJobPods(r.Context(), scope, held, &row)
	if err != nil {
		return err
	}
	var job workload
	if err := held.Decode(r.Context(), row.Body, &job); err != nil {
		return fmt.Errorf("read the status of %s of account %s: %w", row.Key, row.Account, err)
	}
	view := newJobView(&row, &job, pods)
	if a.OmitPodStatus {
		view.Pods = []jobPod{}
	}
	if err := held.Grow(r.Context(), view.encodedBytes()); err != nil {
		return err
	}
	return rest.WriteJSON(w, r, view)
}

// encodedBytes is what a view takes while it is encoded, in a buffer that grows.
func (v *jobView) encodedBytes() int {
	bytes := 3 * web.JSONBytes(v.Message+v.Reason+v.FailureDetails)
	for i := range v.Pods {
		bytes += len(v.Pods[i].Status)
	}
	return 3 * bytes
}

// checkJobAccess checks READ for the application in the path and the account.
func (a *api) checkJobAccess(r *http.Request, scope web.Scope, application string) error {
	if err := a.Authorizer.CheckApplication(r.Context(), scope.Caller, application, authorize.Read); err != nil {
		return err
	}
	return a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read)
}

// findJob finds a Job by its full name, for example "job migrate". As in Clouddriver, the name
// alone is not found.
func (a *api) findJob(ctx context.Context, scope web.Scope, id string) (read.Row, error) {
	notFound := vedette.Errorf(vedette.NotFound, "Job not found (account: %s, location: %s, id: %.300s)", scope.Account, scope.Location, id)
	kind, name, err := manifest.SplitName(id)
	if err != nil {
		return read.Row{}, notFound
	}
	if baseKind, _, _ := strings.Cut(strings.ToLower(kind), "."); baseKind != "job" && baseKind != "jobs" {
		return read.Row{}, vedette.Errorf(vedette.Invalid, "%.300q is not a Job: use \"job\" and its name", id)
	}
	row, err := a.readManifest(ctx, scope, "job.batch "+name)
	if vedette.KindOf(err) == vedette.NotFound {
		err = notFound
	}
	return row, err
}

// listJobPods returns the pods that a Job's selector matches, sorted by start time. Pods that
// have not started are the newest and come last.
func (a *api) listJobPods(ctx context.Context, scope web.Scope, held *web.Memory, job *read.Row) ([]jobPod, error) {
	var m struct {
		Spec struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
		} `json:"spec"`
	}
	if err := held.Decode(ctx, job.Body, &m); err != nil {
		return nil, fmt.Errorf("read %s of account %s: %w", job.Key, scope.Account, err)
	}
	pods := []jobPod{}
	if len(m.Spec.Selector.MatchLabels) == 0 {
		return pods, nil // an empty selector would match all pods
	}
	scope.Location = job.Namespace
	decode := func(document []byte, v any) error { return held.Decode(ctx, document, v) }
	for row, err := range a.listObjects(ctx, scope, held, "pod",
		listOptions{selector: labels.SelectorFromSet(m.Spec.Selector.MatchLabels).String(), bodies: true}) {
		if err != nil {
			return nil, err
		}
		pod, err := newJobPod(row, decode)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	slices.SortStableFunc(pods, func(x, y jobPod) int {
		if x.hasStarted() != y.hasStarted() {
			return cmp.Compare(y.startTime, x.startTime)
		}
		return cmp.Or(cmp.Compare(x.startTime, y.startTime), cmp.Compare(x.Name, y.Name))
	})
	return pods, nil
}

func (p jobPod) hasSucceeded() bool { return p.phase == "Succeeded" }
func (p jobPod) hasStarted() bool   { return p.startTime != "" }

// newJobPod returns a pod, which keeps its status. What decode decodes is paid for until the request ends.
func newJobPod(row read.Row, decode func(document []byte, v any) error) (jobPod, error) {
	var raw struct {
		Status json.RawMessage `json:"status"`
	}
	if err := exactjson.Unmarshal(row.Body, &raw, web.ObjectLimits); err != nil {
		return jobPod{}, fmt.Errorf("read %s of account %s: %w", row.Key, row.Account, err)
	}
	pod := jobPod{Name: row.Name}
	if len(raw.Status) == 0 {
		return pod, nil
	}
	var s struct {
		Phase                 string           `json:"phase"`
		StartTime             string           `json:"startTime"`
		InitContainerStatuses []containerState `json:"initContainerStatuses"`
		ContainerStatuses     []containerState `json:"containerStatuses"`
	}
	if err := decode(raw.Status, &s); err != nil {
		return jobPod{}, fmt.Errorf("read the status of %s of account %s: %w", row.Key, row.Account, err)
	}
	pod.Status = web.WithoutNulls(raw.Status)
	pod.startTime = s.StartTime
	pod.phase = s.Phase
	pod.containerStates = slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	return pod, nil
}

func newJobView(row *read.Row, job *workload, pods []jobPod) jobView {
	v := jobView{Name: row.Name, Account: row.Account, Location: row.Namespace, Provider: "kubernetes", CreatedTime: row.Created * 1000,
		Pods: pods, JobState: "Running"}
	if len(pods) > 0 {
		v.MostRecentPodName = pods[len(pods)-1].Name
	}
	if job.Status == nil {
		return v
	}
	evaluated := jobStatus(job)
	switch {
	case evaluated.Failed.State:
		v.JobState = "Failed"
		v.FailureDetails = firstFailure(pods)
		index := slices.IndexFunc(job.Status.Conditions, func(c kubeCondition) bool { return c.is("Failed", "True") })
		v.Message, v.Reason = job.Status.Conditions[index].Message, job.Status.Conditions[index].Reason
	case evaluated.Stable.State:
		v.JobState = "Succeeded"
	}
	v.CompletionDetails = completionDetails{Message: v.Message, Reason: v.Reason}
	return v
}

// firstFailure describes the first container that failed, or else the first that does not
// start.
func firstFailure(pods []jobPod) string {
	for _, pod := range pods {
		for _, c := range pod.containerStates {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
				return pod.failureMessage(c.Name, strconv.Itoa(t.ExitCode), t.Reason, t.Message)
			}
		}
		for _, c := range pod.containerStates {
			if w := c.State.Waiting; w != nil && c.State.Terminated == nil {
				return pod.failureMessage(c.Name, "", w.Reason, w.Message)
			}
		}
	}
	return ""
}

// failureMessage returns Clouddriver's words, in which a missing text is "null".
func (p jobPod) failureMessage(container, code, status, logs string) string {
	status, logs = cmp.Or(status, "null"), cmp.Or(logs, "null")
	return fmt.Sprintf("Pod: '%s' had errors.\n Container: '%s' exited with code: %s.\n Status: %s.\n Logs: %s", p.Name, container, code,
		status, logs)
}

// cancelJob mirrors JobController.cancelJob. Clouddriver does not implement it for Kubernetes;
// here it deletes the Job and its pods.
func (a *api) cancelJob(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Write); err != nil {
		return err
	}
	if err := a.Authorizer.CheckApplication(r.Context(), scope.Caller, p["app"], authorize.Execute); err != nil {
		return err
	}
	row, err := a.findJob(r.Context(), scope, p["id"])
	if vedette.KindOf(err) == vedette.NotFound {
		w.WriteHeader(http.StatusOK) // it is deleted already
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), liveTimeout)
	defer cancel()
	_, err = a.doOperation(ctx, scope, vedette.DeleteArgs{Propagation: "background", MissingOK: true, NoWait: true,
		Target: vedette.Target{Kind: row.Kind.String(), APIVersion: row.APIVersion, Namespace: row.Namespace, Name: row.Name}})
	if err != nil {
		return &readError{message: fmt.Sprintf("Failed to cancel the job (account: %s, location: %s, id: %s): %s", scope.Account, scope.Location,
			p["id"], err)}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
