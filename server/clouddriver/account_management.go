package clouddriver

import (
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/rest"
)

// accountManagementRoutes are those of CredentialsController that manage accounts in
// Clouddriver's database.
func accountManagementRoutes() []web.Route {
	return []web.Route{
		web.Handle("credentials/type/{type}", rejectAccountManagement),
		web.Handle("POST credentials", rejectAccountManagement),
		web.Handle("PUT credentials", rejectAccountManagement),
		web.Handle("PUT credentials/{account}", rejectAccountManagement),
		web.Handle("DELETE credentials/{account}", rejectAccountManagement),
		web.Handle("credentials/{account}/history", rejectAccountManagement),
	}
}

// rejectAccountManagement returns Clouddriver's error if its account storage is not enabled. Here it
// cannot be: the agents' configuration is the only source of accounts. It does not read the body, because it may contain the
// credentials of a cluster.
func rejectAccountManagement(http.ResponseWriter, *http.Request, web.Params) error {
	return &web.Error{Status: http.StatusBadRequest, Exception: "com.netflix.spinnaker.kork.exceptions.ConfigurationException",
		Message: "Cannot use AccountDefinitionService endpoints without enabling AccountDefinitionService bean: agents register the accounts " +
			"of this server. To add, change or remove an account, edit kubernetes.accounts in the armory-agent.yml of its agent; the agent " +
			"reads the file again and registers the account"}
}

// introspectionView describes what refreshes an account. Clouddriver has caching agents that run
// at an interval, and shows their last run. Here changes are stored as they happen, so there are no
// runs.
type introspectionView struct {
	ID       string            `json:"id"`
	Provider string            `json:"provider"`
	Details  map[string]string `json:"details"`
}

// listCachingAgents mirrors CacheController.getAgentIntrospections. It shows nothing of an account
// but its name, and whether its agent is connected.
func (a *api) listCachingAgents(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	settings, err := a.views.Settings(r.Context())
	if err != nil {
		return err
	}
	agents := []introspectionView{}
	for _, name := range settings.Accounts() {
		agents = append(agents, introspectionView{ID: string(name) + "/KubernetesCoreCachingAgent[1/1]", Provider: "kubernetes",
			Details: map[string]string{"connection": a.connectionState(name)}})
	}
	return rest.WriteJSON(w, r, agents)
}

func (a *api) connectionState(account vedette.AccountName) string {
	if a.Connected(account) {
		return "connected"
	}
	return "disconnected"
}
