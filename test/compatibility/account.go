package compatibility

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Account is an account of the agent, as its configuration has it.
type Account struct {
	Name           string              `json:"name"`
	KubeconfigFile string              `json:"kubeconfigFile"`
	Namespaces     []string            `json:"namespaces,omitempty"`
	Environment    string              `json:"environment,omitempty"`
	AccountType    string              `json:"accountType,omitempty"`
	Permissions    map[string][]string `json:"permissions,omitempty"`
}

// DefaultAccounts are those of the first recording: prod sees everything, dev and locked see
// namespace dev-a only, and locked is restricted.
func DefaultAccounts() []Account {
	return []Account{
		{Name: "prod"},
		{Name: "dev", Namespaces: []string{"dev-a"}, Environment: "staging", AccountType: "team-dev"},
		{Name: "locked", Namespaces: []string{"dev-a"}, Permissions: map[string][]string{"READ": {"dev"}, "WRITE": {"ops"}}},
	}
}

// credentialsPath is the request whose answer describes the accounts.
const credentialsPath = "/credentials?expand=true"

// Accounts returns the accounts of a recording, as Clouddriver described them. An account with all
// namespaces of the cluster is not restricted to them.
func (r *Recording) Accounts() ([]Account, error) {
	if !slices.Contains(r.Answers.Paths, credentialsPath) {
		return DefaultAccounts(), nil
	}
	answer := r.Answers.Recorded(credentialsPath)
	var list []struct {
		Account
		CloudProvider string
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("read the recorded accounts: GET %s has status %d", credentialsPath, answer.Status)
	}
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return nil, fmt.Errorf("read the recorded accounts: %w", err)
	}
	all := r.Cluster.Names(vedette.Kind{Name: "Namespace"})
	var found []Account
	for _, entry := range list {
		if entry.CloudProvider != "kubernetes" {
			continue
		}
		slices.Sort(entry.Namespaces)
		if slices.Equal(entry.Namespaces, all) {
			entry.Namespaces = nil
		}
		found = append(found, entry.Account)
	}
	slices.SortFunc(found, func(a, b Account) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}
