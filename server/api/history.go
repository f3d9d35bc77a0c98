package api

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store"
)

// operationView is an operation in the history.
type operationView struct {
	ID       vedette.OperationID  `json:"id"`
	Account  vedette.AccountName  `json:"account"`
	Verb     vedette.Verb         `json:"verb"`
	DryRun   bool                 `json:"dryRun,omitempty"`
	Target   string               `json:"target"` // for display, for example "Deployment shop/web"
	User     string               `json:"user,omitempty"`
	Origin   string               `json:"origin,omitempty"`
	Server   vedette.ServerID     `json:"server"`          // the server that accepted it
	Agent    vedette.AgentID      `json:"agent,omitempty"` // the agent that it was sent to; empty if it was not sent
	State    vedette.OutcomeState `json:"state"`
	Status   int                  `json:"status"` // 0 while it is pending
	Reason   string               `json:"reason,omitempty"`
	Message  string               `json:"message,omitempty"`
	Accepted timestamp            `json:"accepted"`
	Sent     timestamp            `json:"sent"`
	Ended    timestamp            `json:"ended"`
}

func newOperationView(row store.OperationRow) operationView {
	return operationView{ID: row.ID, Account: row.Account, Verb: row.Verb, DryRun: row.DryRun, Target: row.Target, User: row.User,
		Origin: row.Origin, Server: row.Server,
		Agent: row.Agent, State: row.State, Status: row.Status, Reason: row.Reason, Message: row.Message,
		Accepted: timestamp(row.Accepted), Sent: timestamp(row.Sent), Ended: timestamp(row.Ended)}
}

// operationPage is a page of the history. It has no total, because counting a long history is
// slow.
type operationPage struct {
	Items  []operationView `json:"items"`
	Cursor string          `json:"cursor,omitempty"`
}

func (a *api) listOperations(w http.ResponseWriter, r *http.Request) error {
	values, err := parseParameters(r, "account", "agent", "state", "verb", "origin", "limit", "cursor")
	if err != nil {
		return err
	}
	q, err := parseOperationQuery(values)
	if err != nil {
		return err
	}
	patterns, err := parseAccounts(values)
	if err != nil {
		return err
	}
	q.Accounts, err = a.historyAccounts(r, patterns)
	if err != nil {
		return err
	}
	rows, next, err := a.Store.Operations(r.Context(), q)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		if err := a.checkAccounts(r, patterns); err != nil {
			return err
		}
	}
	page := operationPage{Items: []operationView{}, Cursor: next}
	for _, row := range rows {
		page.Items = append(page.Items, newOperationView(row))
	}
	return writeJSON(w, r, page)
}

func parseOperationQuery(values url.Values) (store.OperationQuery, error) {
	var q store.OperationQuery
	var agent, state, verb string
	for name, field := range map[string]*string{"agent": &agent, "origin": &q.Origin, "cursor": &q.After} {
		var err error
		*field, err = singleValue(values, name)
		if err != nil {
			return q, err
		}
	}
	state, err := enumValue(values, "state", string(store.Pending), string(vedette.Done), string(vedette.Failed), string(vedette.Lost))
	if err != nil {
		return q, err
	}
	verb, err = enumValue(values, "verb", historyVerbs()...)
	if err != nil {
		return q, err
	}
	q.Agent, q.State, q.Verb = vedette.AgentID(agent), vedette.OutcomeState(state), vedette.Verb(verb)
	q.Limit, err = parseLimit(values)
	return q, err
}

// historyVerbs returns all verbs: the history has logs too, although they are not
// requested as operations.
func historyVerbs() []string {
	var names []string
	for _, spec := range vedette.Verbs() {
		names = append(names, string(spec.Verb))
	}
	slices.Sort(names)
	return names
}

// historyAccounts returns the requested accounts that the caller may read, or nil for all. A
// named account may have been deleted since.
func (a *api) historyAccounts(r *http.Request, patterns accountPatterns) ([]vedette.AccountName, error) {
	canRead, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	if err != nil || canRead == nil && patterns.selectAll() {
		return nil, err
	}
	i, err := a.inventory.get(r.Context())
	if err != nil {
		return nil, err
	}
	names := []vedette.AccountName{}
	for _, account := range i.accounts {
		if patterns.match(account.name) && (canRead == nil || canRead(account.name)) {
			names = append(names, account.name)
		}
	}
	for _, p := range patterns.texts {
		name := vedette.AccountName(p)
		switch {
		case hasWildcards(p) || slices.Contains(names, name):
		case canRead != nil && !canRead(name):
			return nil, vedette.Errorf(vedette.Denied, "you do not have permission to read account %.255s", p)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// checkAccounts returns an error if a history without entries is due to an unknown account.
func (a *api) checkAccounts(r *http.Request, patterns accountPatterns) error {
	_, err := withInventory(r.Context(), a.inventory, func(i *inventory) ([]*accountEntry, error) { return i.selectAccounts(patterns) })
	return err
}

func (a *api) getOperation(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	row, err := a.Store.Operation(r.Context(), vedette.OperationID(r.PathValue("id")))
	if err != nil {
		return err
	}
	canRead, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	if err != nil {
		return err
	}
	if canRead != nil && !canRead(row.Account) {
		return store.NoOperation(row.ID)
	}
	return writeJSON(w, r, newOperationView(row))
}
