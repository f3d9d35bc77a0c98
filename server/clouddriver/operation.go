package clouddriver

import (
	"context"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/task"
)

// operationRoutes returns the routes of OperationsController, FeaturesController and
// CacheController, and those of the Scale Agent's agents, accounts, history and instances. "task/{id}:resume" comes before
// "task/{id}", which matches its path too.
func (a *api) operationRoutes() []web.Route {
	history := []web.Route{
		web.Handle("armory/accounts", a.listAccountRecords),
		web.Handle("armory/accounts/{account}", a.getAccountRecord),
		web.Handle("agents/kubernetes/accounts/{account}", a.getAccountRecord),
		web.Handle("agents/kubernetes/accounts/{account}/namespaces", a.getAccountNamespaces),
		web.Handle("armory/agents", a.listAgents),
		web.Handle("armory/agents/{id}", a.getAgent),
		web.Handle("armory/clouddrivers", a.listServers),
		web.Handle("armory/clouddrivers/{id}", a.getServer),
		web.Handle("armory/agent/operations", a.listOperations),
		web.Handle("armory/agent/operations/{id}", a.getOperation),
	}
	if a.Tasks == nil {
		return history
	}
	return append(history,
		web.Handle("POST ops", a.submit),
		web.Handle("POST ops/{name}", a.submitOne),
		web.Handle("POST {provider}/ops", a.submit),
		web.Handle("POST {provider}/ops/{name}", a.submitOne),
		web.Handle("task", a.listTasks),
		web.Handle("POST task/{id}:resume", a.resumeTask),
		web.Handle("task/{id}", a.getTask),
		web.Handle("PATCH {provider}/task/{id}", a.patchTask),
		web.Handle("{provider}/task/{id}/owner", a.getOwner),
		web.Handle("POST {provider}/task/{id}/restart", a.restartTask),
		web.Handle("features/stages", a.listStages),
		web.Handle("POST cache/{provider}/{type}", a.refreshCache),
		web.Handle("cache/{provider}/{type}", a.listRefreshes),
	)
}

// maxBodyBytes bounds a request body, which contains the manifests of a deployment.
const maxBodyBytes = 32 << 20

// taskRef is the response to a request that starts a task.
type taskRef struct {
	ID          string `json:"id"`
	ResourceURI string `json:"resourceUri"`
}

func writeTaskRef(w http.ResponseWriter, r *http.Request, id string) error {
	return rest.WriteJSON(w, r, taskRef{id, "/task/" + id})
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return rest.ReadBody(w, r, "body", maxBodyBytes)
}

// taskOptions returns the options of a task from the headers and the query.
func (a *api) taskOptions(r *http.Request, provider string) task.Options {
	caller := authorize.CallerOf(r)
	o := task.Options{
		MayWrite: func(ctx context.Context, account vedette.AccountName) error {
			return a.Authorizer.CheckAccount(ctx, caller, account, authorize.Write)
		},
		MayReadApplication: func(ctx context.Context, application string) error {
			return a.Authorizer.CheckApplication(ctx, caller, application, authorize.Read)
		},
		RequestID: web.SingleParam(r.URL.Query(), "clientRequestId"), Provider: provider,
		Application: r.Header.Get("X-SPINNAKER-APPLICATION"), User: r.Header.Get("X-SPINNAKER-USER"),
		Requester: caller.Requester, Source: readlimit.CallerOf(r).Source,
	}
	if a.Remote != nil {
		o.Remote = a.Remote(r, provider)
	}
	return o
}

// submit mirrors OperationsController.cloudProviderOperations and operations.
func (a *api) submit(w http.ResponseWriter, r *http.Request, p web.Params) error {
	requests, err := readRequests(w, r)
	if err != nil {
		return err
	}
	return a.submitRequests(w, r, p, requests)
}

func readRequests(w http.ResponseWriter, r *http.Request) ([]task.Request, error) {
	raw, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	return task.ParseRequests(raw)
}

// submitOne mirrors OperationsController.cloudProviderOperation and operation.
func (a *api) submitOne(w http.ResponseWriter, r *http.Request, p web.Params) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	requests, err := task.ParseRequest(p["name"], raw)
	if err != nil {
		return err
	}
	return a.submitRequests(w, r, p, requests)
}

func (a *api) submitRequests(w http.ResponseWriter, r *http.Request, p web.Params, requests []task.Request) error {
	id, err := a.Tasks.Submit(r.Context(), requests, a.taskOptions(r, p["provider"]))
	if err != nil {
		return err
	}
	return writeTaskRef(w, r, id)
}

// restartTask mirrors OperationsController.restartCloudProviderTask.
func (a *api) restartTask(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if err := checkProvider(p); err != nil {
		return err
	}
	requests, err := readRequests(w, r)
	if err != nil {
		return err
	}
	if err := a.Tasks.Restart(r.Context(), p["id"], requests, a.taskOptions(r, p["provider"])); err != nil {
		return err
	}
	return writeTaskRef(w, r, p["id"])
}

// patchTask mirrors OperationsController.updateTask.
func (a *api) patchTask(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if err := checkProvider(p); err != nil {
		return err
	}
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	var body struct {
		Retry *bool `json:"retry"`
	}
	if err := exactjson.Unmarshal(raw, &body, exactjson.Limits{}); err != nil || body.Retry == nil {
		return vedette.Errorf(vedette.Invalid, `Patching task id: %s with the provided inputs is not supported: send {"retry": true}`, p["id"])
	}
	if err := a.checkTaskWriteAccess(r, p["id"]); err != nil {
		return err
	}
	if err := a.Tasks.Cancel(r.Context(), p["id"], *body.Retry); err != nil {
		return err
	}
	return writeTaskRef(w, r, p["id"])
}

// checkProvider rejects tasks of other cloud providers like Clouddriver.
func checkProvider(p web.Params) error {
	if p["provider"] != "kubernetes" {
		return &web.Error{Status: http.StatusInternalServerError, Exception: "java.lang.UnsupportedOperationException",
			Message: "updating Task information not supported via this endpoint for cloudprovider: " + p["provider"] +
				". Supported cloudproviders are: [kubernetes]"}
	}
	return nil
}

type stageView struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

// listStages mirrors FeaturesController.stages.
func (a *api) listStages(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	var stages []stageView
	for _, name := range task.Operations() {
		stages = append(stages, stageView{name, true})
	}
	return rest.WriteJSON(w, r, stages)
}

// refreshCache mirrors CacheController.handleOnDemand for a provider without on-demand
// caching. It reports the refresh as done, because older versions of Orca wait for it.
func (a *api) refreshCache(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	return rest.WriteJSON(w, r, map[string]any{"cachedIdentifiersByType": map[string]any{}})
}

// listRefreshes mirrors CacheController.pendingOnDemands.
func (a *api) listRefreshes(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	return rest.WriteJSON(w, r, []string{})
}
