package clouddriver

import (
	"net/http"

	"github.com/vedette-io/vedette"
)

// accountManagementRoutes are those of CredentialsController that manage accounts in
// Clouddriver's database.
func accountManagementRoutes() []route {
	return []route{
		{"credentials/type/{type}", rejectAccountManagement},
		{"POST credentials", rejectAccountManagement},
		{"PUT credentials", rejectAccountManagement},
		{"PUT credentials/{account}", rejectAccountManagement},
		{"DELETE credentials/{account}", rejectAccountManagement},
		{"credentials/{account}/history", rejectAccountManagement},
	}
}

// accountManagementError is Clouddriver's error if its account storage is not enabled. Here it
// cannot be: the agents' configuration is the only source of accounts.
type accountManagementError struct{}

func (accountManagementError) Error() string {
	return "Cannot use AccountDefinitionService endpoints without enabling AccountDefinitionService bean: agents register the accounts " +
		"of this server. To add, change or remove an account, edit kubernetes.accounts in the armory-agent.yml of its agent; the agent " +
		"reads the file again and registers the account"
}

// rejectAccountManagement does not read the body, because it may contain the credentials of a
// cluster.
func rejectAccountManagement(http.ResponseWriter, *http.Request, pathParams) error {
	return accountManagementError{}
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
func (a *api) listCachingAgents(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	rows, err := a.Store.Accounts(r.Context())
	if err != nil {
		return err
	}
	agents := []introspectionView{}
	for _, row := range rows {
		agents = append(agents, introspectionView{ID: string(row.Name) + "/KubernetesCoreCachingAgent[1/1]", Provider: "kubernetes",
			Details: map[string]string{"connection": a.connectionState(row.Name)}})
	}
	return writeJSON(w, r, agents)
}

func (a *api) connectionState(account vedette.AccountName) string {
	if a.Connected(account) {
		return "connected"
	}
	return "disconnected"
}
