package clouddriver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/registry"
)

// Agent is a connected agent.
type Agent struct {
	ID            vedette.AgentID
	Server        vedette.ServerID // the server that it is connected to
	ZoneID        string
	LastHeartbeat time.Time
	Accounts      []AgentAccount
}

// AgentAccount is an account that an agent has registered.
type AgentAccount struct {
	Name vedette.AccountName
	// Reports is set for the one agent that reports the account, and StandsBy for those that wait. Others cannot serve it.
	Reports, StandsBy bool
	Message           string // why the agent cannot report it; empty if it can
}

// agentRecord is an agent in the format of the Scale Agent's ArmoryAgentResponse.
type agentRecord struct {
	Accounts       []vedette.AccountName `json:"accounts"`
	AgentID        vedette.AgentID       `json:"agentId"`
	Caching        bool                  `json:"caching"` // whether it reports any account
	ClouddriverID  vedette.ServerID      `json:"clouddriverId"`
	LastConnection string                `json:"lastConnection"`
	Type           string                `json:"type"`
}

// recordTime is how the Scale Agent writes times of agents.
const recordTime = "2006-01-02T15:04:05.000Z"

func newAgentRecord(a Agent) agentRecord {
	record := agentRecord{Accounts: []vedette.AccountName{}, AgentID: a.ID, ClouddriverID: a.Server,
		LastConnection: a.LastHeartbeat.UTC().Format(recordTime), Type: providerKubernetes}
	for _, account := range a.Accounts {
		record.Accounts = append(record.Accounts, account.Name)
		record.Caching = record.Caching || account.Reports
	}
	return record
}

const providerKubernetes = "kubernetes"

// connectedAgents returns the agents of all servers, or an error if a server does not say which it has: its agents would look gone.
func (a *api) connectedAgents(ctx context.Context) ([]Agent, error) {
	agents, silent := a.Agents(ctx)
	if len(silent) == 0 {
		return agents, nil
	}
	names := make([]string, len(silent))
	for i, id := range silent {
		names[i] = string(id)
	}
	return nil, vedette.Errorf(vedette.Unavailable, "the servers %.500s do not say which agents are connected to them: try again, or use "+
		"GET /vedette/v1/agents, which shows the others", strings.Join(names, ", "))
}

// listAgents mirrors the Scale Agent's GET /armory/agents.
func (a *api) listAgents(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	agents, err := a.connectedAgents(r.Context())
	if err != nil {
		return err
	}
	records := make([]agentRecord, 0, len(agents))
	for _, agent := range agents {
		records = append(records, newAgentRecord(agent))
	}
	return rest.WriteJSON(w, r, records)
}

// getAgent mirrors the Scale Agent's GET /armory/agents/{agentId}. Of several agents with one ID, it returns the one that was heard last.
func (a *api) getAgent(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if p["id"] == "" { // as Spring takes a slash at the end
		return a.listAgents(w, r, p)
	}
	agents, err := a.connectedAgents(r.Context())
	if err != nil {
		return err
	}
	var found *Agent
	for i, agent := range agents {
		if agent.ID == vedette.AgentID(p["id"]) && (found == nil || agent.LastHeartbeat.After(found.LastHeartbeat)) {
			found = &agents[i]
		}
	}
	if found == nil {
		return vedette.Errorf(vedette.NotFound, "no agent %.253q is connected: GET /armory/agents lists them", p["id"])
	}
	return rest.WriteJSON(w, r, newAgentRecord(*found))
}

// accountRecord is an account in the format of the Scale Agent. It has the members that the Scale Agent's documentation shows, and those of
// its KubesvcAccount that apply.
type accountRecord struct {
	Name        vedette.AccountName  `json:"name"`
	Type        string               `json:"type"`
	Source      string               `json:"source"`
	Config      struct{}             `json:"config"`
	ZoneID      string               `json:"zoneId,omitempty"`
	Agents      []accountAgentRecord `json:"agents"`
	Status      string               `json:"status"` // ACTIVE, or ORPHANED if no agent reports it
	Dynamic     bool                 `json:"dynamic"`
	Permissions *permissionView      `json:"permissions,omitempty"` // none: open to everyone
	LastMessage string               `json:"lastAssignmentMsg"`
}

type accountAgentRecord struct {
	AgentID vedette.AgentID `json:"agentId"`
	Caching bool            `json:"caching"`
}

// agentSource is where the Scale Agent says that accounts come from which are in the configuration of an agent.
const agentSource = "static-agent-config"

func newAccountRecord(row *accountlist.Row, agents []Agent) accountRecord {
	record := accountRecord{Name: row.Name, Type: providerKubernetes, Source: agentSource, Agents: []accountAgentRecord{}, Status: "ORPHANED",
		Permissions: newPermissionView(row.Properties.Permissions)}
	var problem string
	for _, agent := range agents {
		for _, account := range agent.Accounts {
			if account.Name != row.Name {
				continue
			}
			if account.Message != "" {
				problem = fmt.Sprintf("Agent %s: %s", agent.ID, account.Message)
			}
			if account.Reports || account.StandsBy {
				record.Agents = append(record.Agents, accountAgentRecord{agent.ID, account.Reports})
			}
			if account.Reports {
				record.Status, record.ZoneID = "ACTIVE", agent.ZoneID
				record.LastMessage = fmt.Sprintf("successfully assigned to Agent %s", agent.ID)
			}
		}
	}
	record.LastMessage = cmp.Or(problem, record.LastMessage, "no agent of the account is connected")
	return record
}

// accountPage is the answer of GET /armory/accounts.
type accountPage struct {
	Items []accountRecord `json:"items"`
	Page  int             `json:"page"`
	Limit int             `json:"limit"`
	Total int             `json:"total"`
}

// Limits of the list of accounts.
const (
	defaultAccounts = 100
	maxAccounts     = 1000
)

// listAccountRecords mirrors the Scale Agent's GET /armory/accounts. Pages count from 1.
func (a *api) listAccountRecords(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	page := accountPage{Items: []accountRecord{}}
	var err error
	if page.Page, err = positive(r.URL.Query(), "page", 1, maxPagedItems); err != nil {
		return err
	}
	if page.Limit, err = positive(r.URL.Query(), "limit", defaultAccounts, maxAccounts); err != nil {
		return err
	}
	accounts, byName, err := a.accountsWithAgents(r.Context())
	if err != nil {
		return err
	}
	page.Total = accounts.Len()
	names := accounts.Names()
	first := min(len(names), (page.Page-1)*page.Limit)
	for _, name := range names[first:min(len(names), first+page.Limit)] {
		page.Items = append(page.Items, newAccountRecord(accounts.Row(name), byName[name]))
	}
	return rest.WriteJSON(w, r, page)
}

// positive returns a parameter that is a number from 1 to a maximum.
func positive(query url.Values, name string, otherwise, maximum int) (int, error) {
	text := web.SingleParam(query, name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maximum {
		return 0, vedette.Errorf(vedette.Invalid, "invalid %s %.40q: must be a number from 1 to %d", name, text, maximum)
	}
	return n, nil
}

// accountsWithAgents returns all accounts, and the agents that have registered each of them.
func (a *api) accountsWithAgents(ctx context.Context) (*accountlist.List, map[vedette.AccountName][]Agent, error) {
	if err := a.Store.CheckLease(ctx); err != nil {
		return nil, nil, err
	}
	accounts, err := a.Accounts.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	agents, err := a.connectedAgents(ctx)
	if err != nil {
		return nil, nil, err
	}
	byName := map[vedette.AccountName][]Agent{}
	for _, agent := range agents {
		for _, account := range agent.Accounts {
			alone := agent
			alone.Accounts = []AgentAccount{account}
			byName[account.Name] = append(byName[account.Name], alone)
		}
	}
	return accounts, byName, nil
}

// getAccountRecord mirrors the Scale Agent's GET /armory/accounts/{name} and GET /agents/kubernetes/accounts/{name}.
func (a *api) getAccountRecord(w http.ResponseWriter, r *http.Request, p web.Params) error {
	name := vedette.AccountName(p["account"])
	accounts, byName, err := a.accountsWithAgents(r.Context())
	if err != nil {
		return err
	}
	row := accounts.Row(name)
	if row == nil {
		return web.AccountNotFound(registry.ErrNoAccount, name)
	}
	return rest.WriteJSON(w, r, newAccountRecord(row, byName[name]))
}

// getAccountNamespaces mirrors the Scale Agent's GET /agents/kubernetes/accounts/{name}/namespaces.
func (a *api) getAccountNamespaces(w http.ResponseWriter, r *http.Request, p web.Params) error {
	name := vedette.AccountName(p["account"])
	if err := a.Store.CheckLease(r.Context()); err != nil {
		return err
	}
	accounts, err := a.Accounts.Current(r.Context())
	if err != nil {
		return err
	}
	row := accounts.Row(name)
	if row == nil {
		return web.AccountNotFound(registry.ErrNoAccount, name)
	}
	namespaces, err := a.Store.Namespaces(r.Context(), name)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, visibleNamespaces(row, namespaces[name]))
}
