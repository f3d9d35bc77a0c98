package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/timespan"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/tables"
)

type operationView struct {
	ID      vedette.OperationID  `json:"id"`
	Account vedette.AccountName  `json:"account"`
	Verb    vedette.Verb         `json:"verb"`
	DryRun  bool                 `json:"dryRun,omitempty"`
	Target  string               `json:"target"` // for display, for example "Deployment shop/web"
	User    string               `json:"user"`   // who it was: see vedette.Requester
	Claimed string               `json:"claimed,omitempty"`
	Proven  string               `json:"proven,omitempty"`
	Service string               `json:"service,omitempty"`
	Address string               `json:"address,omitempty"`
	Origin  string               `json:"origin,omitempty"`
	Server  vedette.ServerID     `json:"server"`          // the server that accepted it
	Agent   vedette.AgentID      `json:"agent,omitempty"` // the agent that it was sent to; empty if it was not sent
	State   vedette.OutcomeState `json:"state"`
	Status  int                  `json:"status"` // 0 while it is pending
	Reason  string               `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
	// Undoes is the operation whose change it took back.
	Undoes   vedette.OperationID `json:"undoes,omitempty"`
	Accepted timestamp           `json:"accepted"`
	Sent     timestamp           `json:"sent"`
	Ended    timestamp           `json:"ended"`
}

func newOperationView(row history.Operation) operationView {
	q := row.Requester
	v := operationView{ID: row.ID, Account: row.Account, Verb: row.Verb, DryRun: row.DryRun, Target: row.Target, User: q.User,
		Claimed: q.Claimed, Proven: q.Proven, Service: q.Service, Address: q.Address,
		Origin: row.Origin, Server: row.Server,
		Agent: row.Agent, State: row.State, Status: row.Status, Reason: row.Reason, Message: row.Message, Undoes: row.Undoes,
		Accepted: timestamp(row.Accepted), Sent: timestamp(row.Sent), Ended: timestamp(row.Ended)}
	if q.Address == "" && q.Proven == "" { // recorded by an older release: nothing was proven
		v.Claimed = q.User
	}
	if v.User == "" {
		v.User = authorize.Anonymous
	}
	return v
}

type operationDetail struct {
	operationView
	Changes []changeView `json:"changes,omitempty"`
}

// changeView is what an operation changed of an object.
type changeView struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// The versions before and after; omitted of an object that was created or deleted.
	Before string          `json:"resourceVersionBefore,omitempty"`
	After  string          `json:"resourceVersionAfter,omitempty"`
	Patch  json.RawMessage `json:"patch,omitempty"` // RFC 6902
	Note   string          `json:"note,omitempty"`  // what the patch lacks
}

func newOperationDetail(row history.Operation) operationDetail {
	d := operationDetail{operationView: newOperationView(row)}
	for _, c := range row.Changes {
		d.Changes = append(d.Changes, changeView{c.Key.Kind.String(), c.Key.Namespace, c.Key.Name, c.Before, c.After, c.Patch, c.Note})
	}
	return d
}

// operationPage is a page of the history. It has no total, because counting a long history is
// slow.
type operationPage struct {
	Items     []operationView `json:"items"`
	Cursor    string          `json:"cursor,omitempty"`
	Retention *retentionView  `json:"retention,omitempty"`
}

// History is how long the server keeps operations, and what it keeps now.
type History struct {
	Keep     time.Duration
	MaxBytes int64
	Size     history.Size // as it was measured some minutes ago
}

type retentionView struct {
	KeepSeconds int64     `json:"keepSeconds"`
	MaxBytes    int64     `json:"maxBytes"`
	Entries     int64     `json:"entries"`
	Bytes       int64     `json:"bytes"`
	Oldest      timestamp `json:"oldest"` // when the oldest entry was accepted
}

var operationParameters = []string{"account", "agent", "state", "verb", "origin", "user", "since", "until", "endedSince", "object",
	"namespace", "limit", "cursor"}

func (a *api) listOperations(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, operationParameters...)
	if err != nil {
		return err
	}
	q, err := parseOperationQuery(values, time.Now())
	if err != nil {
		return err
	}
	patterns, err := parameters.Accounts(values)
	if err != nil {
		return err
	}
	q.Accounts, err = a.historyAccounts(r, patterns)
	if err != nil {
		return err
	}
	if err := a.selectObject(r, values, &q); err != nil {
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
	page := operationPage{Items: []operationView{}, Cursor: next, Retention: a.retention()}
	for _, row := range rows {
		page.Items = append(page.Items, newOperationView(row))
	}
	return rest.WriteJSON(w, r, page)
}

// retention returns how long operations are kept; nil if the server does not say.
func (a *api) retention() *retentionView {
	if a.History == nil {
		return nil
	}
	h := a.History()
	return &retentionView{int64(h.Keep.Seconds()), h.MaxBytes, h.Size.Entries, h.Size.Bytes, timestamp(h.Size.Oldest)}
}

func parseOperationQuery(values url.Values, now time.Time) (history.Query, error) {
	var q history.Query
	var agent, state, verb string
	times := map[string]*time.Time{"since": &q.Since, "until": &q.Until, "endedSince": &q.EndedSince}
	err := parameters.Singles(values, map[string]*string{"agent": &agent, "origin": &q.Origin, "cursor": &q.After, "user": &q.User,
		"namespace": &q.Namespace})
	if err != nil {
		return q, err
	}
	state, err = parameters.Enum(values, "state", string(history.Pending), string(vedette.Done), string(vedette.Failed), string(vedette.Lost))
	if err != nil {
		return q, err
	}
	verb, err = parameters.Enum(values, "verb", historyVerbs()...)
	if err != nil {
		return q, err
	}
	q.Agent = vedette.AgentID(agent)
	q.State = vedette.OutcomeState(state)
	q.Verb = vedette.Verb(verb)
	for _, name := range slices.Sorted(maps.Keys(times)) {
		text, err := parameters.Single(values, name)
		if err != nil {
			return q, err
		}
		*times[name], err = timespan.ParsePast(name, text, now)
		if err != nil {
			return q, err
		}
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, vedette.Errorf(vedette.Invalid, "since (%s) is not before until (%s): nothing can be between them", q.Since.UTC().Format(time.RFC3339),
			q.Until.UTC().Format(time.RFC3339))
	}
	q.Limit, err = parameters.Limit(values)
	return q, err
}

// selectObject sets the object that the parameter object names: KIND/NAME. A kind is known by all its names, also if no
// account has it any more.
func (a *api) selectObject(r *http.Request, values url.Values, q *history.Query) error {
	object, err := parameters.Single(values, "object")
	if err != nil || !values.Has("object") {
		return err
	}
	i, err := a.accountFeeds.Get(r.Context())
	if err != nil {
		return err
	}
	return selectObject(i, object, q)
}

func selectObject(i *accountfeeds.List, object string, q *history.Query) error {
	kind, name, found := strings.Cut(object, "/")
	if !found || kind == "" || name == "" || strings.Contains(name, "/") {
		return vedette.Errorf(vedette.Invalid, "invalid object %.300q: must be KIND/NAME, for example deployment/web; the parameter namespace names its namespace", object)
	}
	resources := i.Resources
	if q.Accounts != nil { // others may call their kinds what they like
		var accounts []*accountfeeds.Account
		for _, account := range q.Accounts {
			if entry := i.Account(account); entry != nil {
				accounts = append(accounts, entry)
			}
		}
		resources = accountfeeds.ResourcesOf(accounts)
	}
	q.Name, q.Kinds = name, kindsNamed(resources, kind)
	if len(q.Kinds) > maxSpellings {
		return vedette.Errorf(vedette.Invalid, "clusters serve too many kinds with the name %.300q: write its group, for example deployment.apps/web, or name an account",
			kind)
	}
	return nil
}

// maxSpellings is how many names of kinds the history is searched by: databases limit the values of a statement, and agents may report
// thousands of kinds that share a short name.
const maxSpellings = 2000

// kindsNamed returns the texts by which the history may have a kind: of all kinds of that name, and as requests write it. An operation that
// failed, was lost or is pending has the kind as its request wrote it; Spinnaker writes replicaSet.
func kindsNamed(resources []vedette.Resource, kind string) []string {
	kinds := []string{kind}
	for _, r := range resources {
		if !r.Matches(kind) {
			continue
		}
		kinds = append(kinds, spellings(r)...)
	}
	if r, err := tables.FindResource(resources, kind); err == nil {
		kinds = append(kinds, spellings(r)...)
	}
	slices.Sort(kinds)
	return slices.DeleteFunc(slices.Compact(kinds), func(k string) bool { return k == "" })
}

// spellings returns the names of a kind, alone and with the group.
func spellings(r vedette.Resource) []string {
	name := r.Kind.Name
	initial := min(1, len(name))
	names := append([]string{name, strings.ToLower(name), strings.ToLower(name[:initial]) + name[initial:], r.Plural, r.Singular},
		r.ShortNames...)
	for _, name := range slices.Clone(names) {
		if name != "" && r.Kind.Group != "" {
			names = append(names, name+"."+r.Kind.Group)
		}
	}
	return names
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
func (a *api) historyAccounts(r *http.Request, patterns parameters.Patterns) ([]vedette.AccountName, error) {
	canRead, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	if err != nil || canRead == nil && patterns.SelectAll() {
		return nil, err
	}
	i, err := a.accountFeeds.Get(r.Context())
	if err != nil {
		return nil, err
	}
	names := []vedette.AccountName{}
	for _, account := range i.Accounts {
		if patterns.Match(account.Name) && (canRead == nil || canRead(account.Name)) {
			names = append(names, account.Name)
		}
	}
	for _, p := range patterns.Texts {
		name := vedette.AccountName(p)
		switch {
		case parameters.HasWildcards(p) || slices.Contains(names, name):
		case canRead != nil && !canRead(name):
			return nil, vedette.Errorf(vedette.Denied, "you do not have permission to read account %.255s", p)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// checkAccounts returns an error if an answer without entries is due to an unknown account.
func (a *api) checkAccounts(r *http.Request, patterns parameters.Patterns) error {
	_, err := accountfeeds.With(r.Context(), a.accountFeeds, func(i *accountfeeds.List) ([]*accountfeeds.Account, error) {
		return i.Require(patterns)
	})
	return err
}

func (a *api) getOperation(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters.Parse(r); err != nil {
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
		return history.NoOperation(row.ID)
	}
	return rest.WriteJSON(w, r, newOperationDetail(row))
}
