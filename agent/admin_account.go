package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// The states of an account by the predecessor's names.
const (
	stateConfigLoaded   = "ConfigLoaded"   // its cluster was not reached yet
	stateDiscoveryError = "DiscoveryError" // its cluster cannot be read
	stateHealthy        = "Healthy"
)

// accountView is an account in the response of /accounts. Its fields have the names of the
// predecessor's filters.
type accountView struct {
	Config accountConfigView
	State  accountStateView
	Kinds  []string // that the agent found in the cluster and reports; empty while another agent reports the account
}

// accountConfigView is the configuration of an account without its credentials.
type accountConfigView struct {
	Name                    vedette.AccountName
	Dynamic                 bool     // always false, because accounts come from files; tools of the predecessor's users filter by it
	KubeconfigFile          string   `json:",omitempty"`
	Context                 string   `json:",omitempty"`
	ServiceAccount          bool     `json:",omitempty"`
	Insecure                bool     `json:",omitempty"`
	Kinds                   []string `json:",omitempty"`
	OmitKinds               []string `json:",omitempty"`
	Namespaces              []string `json:",omitempty"`
	OmitNamespaces          []string `json:",omitempty"`
	OnlyNamespacedResources bool     `json:",omitempty"`
	OnlySpinnakerManaged    bool     `json:",omitempty"`
}

type accountStateView struct {
	Name  string // by the predecessor's names
	Phase string // by our names, as in /health
	Error string `json:",omitempty"`
}

func (a *Agent) listAccounts(w http.ResponseWriter, r *http.Request) {
	q, err := parseAccountQuery(r)
	if err != nil {
		admin.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	var views []accountView
	for _, account := range a.accounts.all() {
		view := account.view()
		if q.Matches("Config.Name", string(view.Config.Name)) && q.Matches("State.Name", view.State.Name) &&
			q.Matches("Config.Dynamic", fmt.Sprint(view.Config.Dynamic)) {
			views = append(views, view)
		}
	}
	slices.SortFunc(views, func(x, y accountView) int { return strings.Compare(string(x.Config.Name), string(y.Config.Name)) })
	admin.WriteList(w, q, views)
}

func parseAccountQuery(r *http.Request) (admin.Query, error) {
	q, err := admin.ParseQuery(r.URL.Query(), "Config.Name", "Config.Dynamic", "State.Name")
	if err != nil {
		return q, err
	}
	for filter, allowed := range map[string][]string{
		"Config.Dynamic": {"true", "false"}, "State.Name": {stateDiscoveryError, stateHealthy, stateConfigLoaded},
	} {
		if !q.Matches(filter, "") && !slices.ContainsFunc(allowed, func(value string) bool { return q.Matches(filter, value) }) {
			return q, fmt.Errorf("the parameter %s must be one of %s, got %.100q", filter, strings.Join(allowed, ", "), q.Filter(filter))
		}
	}
	return q, nil
}

func (a *account) view() accountView {
	c, status := a.cfg, a.status()
	view := accountView{
		Config: accountConfigView{
			Name: c.Name, KubeconfigFile: c.Access.KubeconfigFile, Context: c.Access.Context, ServiceAccount: c.Access.InCluster,
			Insecure: c.Access.Insecure, Kinds: c.Selection.Kinds, OmitKinds: c.Selection.OmitKinds, Namespaces: c.Selection.Namespaces,
			OmitNamespaces: c.Selection.OmitNamespaces, OnlyNamespacedResources: c.Selection.OnlyNamespaced,
			OnlySpinnakerManaged: c.Selection.OnlySpinnakerManaged,
		},
		State: accountStateView{Name: predecessorState(status), Phase: status.State, Error: status.Error},
		Kinds: []string{},
	}
	for _, feed := range a.feedStatuses() {
		view.Kinds = append(view.Kinds, feed.Feed.Kind.String())
	}
	view.Kinds = slices.Compact(view.Kinds) // feeds are sorted by kind
	return view
}

// predecessorState returns the predecessor's name of a state. The server refuses accounts whose
// cluster was read, so these are not errors of discovery.
func predecessorState(s AccountStatus) string {
	switch {
	case s.Error != "" && !s.waiting && s.State != "refused":
		return stateDiscoveryError
	case s.State == "reaching":
		return stateConfigLoaded
	}
	return stateHealthy
}

// clusterVersionTimeout bounds a request to a cluster that a reader waits for.
const clusterVersionTimeout = 5 * time.Second

// getClusterVersion asks the account's cluster for its version.
func (a *Agent) getClusterVersion(w http.ResponseWriter, r *http.Request) {
	name := vedette.AccountName(r.PathValue("name"))
	account := a.accounts.get(name)
	if account == nil {
		admin.WriteError(w, http.StatusNotFound, fmt.Sprintf("this agent has no account %.253q: GET /accounts lists the accounts that it has", string(name)))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), clusterVersionTimeout)
	defer cancel()
	version, err := account.clusterVersion(ctx)
	if err != nil {
		admin.WriteError(w, http.StatusServiceUnavailable, fmt.Sprintf("read the version of the cluster of account %s: %v", name, err))
		return
	}
	admin.WriteJSON(w, http.StatusOK, version)
}

// clusterVersion is what an API server says about itself.
type clusterVersion struct {
	Major      string `json:"major"`
	Minor      string `json:"minor"`
	GitVersion string `json:"gitVersion"`
	GitCommit  string `json:"gitCommit,omitempty"`
	BuildDate  string `json:"buildDate,omitempty"`
	GoVersion  string `json:"goVersion,omitempty"`
	Platform   string `json:"platform,omitempty"`
}

// maxVersionBytes bounds the response, which has some hundred bytes.
const maxVersionBytes = 64 << 10

func (a *account) clusterVersion(ctx context.Context) (clusterVersion, error) {
	var v clusterVersion
	a.mu.Lock()
	cluster := a.cluster
	a.mu.Unlock()
	if cluster == nil {
		return v, vedette.Errorf(vedette.Unavailable, "the agent has not reached it yet")
	}
	response, err := cluster.Do(ctx, kube.Request{Path: "/version"})
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return v, vedette.Errorf(vedette.Unavailable, "GET /version: %s", response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxVersionBytes))
	if err == nil {
		err = exactjson.Unmarshal(body, &v, exactjson.Limits{})
	}
	if err != nil {
		return v, fmt.Errorf("read the version: %w", err)
	}
	return v, nil
}
