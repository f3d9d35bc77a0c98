package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	rules "github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

// accountView is an account with the state of its cluster, its agent and its feeds.
type accountView struct {
	Name       vedette.AccountName `json:"name"`
	Status     accountStatus       `json:"status"`
	Cluster    clusterView         `json:"cluster"`
	Properties vedette.Properties  `json:"properties"`
	Namespaces []string            `json:"namespaces"`
	Agent      vedette.AgentID     `json:"agent,omitempty"`  // the agent that reports it; empty if there is none
	Server     vedette.ServerID    `json:"server,omitempty"` // the server that the agent is connected to
	Registered timestamp           `json:"registered"`
	LastSeen   timestamp           `json:"lastSeen"`
	Orphaned   timestamp           `json:"orphaned"` // since when no agent is connected; null if one is
	Objects    int64               `json:"objects"`
	// Verified is when the live feed that was verified longest ago was last found to equal its cluster; null if
	// one was never.
	Verified timestamp `json:"verified"`
	// DriftObjects is how many objects were found to differ from the cluster, and were read anew, all together.
	DriftObjects int64                     `json:"driftObjects"`
	Feeds        map[vedette.FeedState]int `json:"feeds"` // number of feeds by state, or feedStale
	Watermark    timestamp                 `json:"watermark"`
	LagMs        *int64                    `json:"lagMs"`
	Stale        bool                      `json:"stale"`
	// why it is not Ready, why the Clouddriver behind the server answers for it, and conflicting registrations of other agents
	Message string `json:"message,omitempty"`
	// what the caller may do with the account; only with include=access
	Access []authorize.Access `json:"access,omitempty"`
	// Conditions are what its agent says of it, besides its status.
	Conditions []conditionView `json:"conditions,omitempty"`
	// other clusters whose agents want to register the name
	Conflicts []conflictView `json:"conflicts,omitempty"`
}

// conflictView is an agent that was refused because another cluster has the name of the account.
type conflictView struct {
	Agent   vedette.AgentID `json:"agent"`
	Cluster clusterView     `json:"cluster"`
}

type clusterView struct {
	UID         string `json:"uid,omitempty"`
	Host        string `json:"host"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Version     string `json:"version,omitempty"`
}

func (a *api) listAccounts(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, "account", "limit", "cursor", "include")
	if err != nil {
		return err
	}
	include, err := parameters.Enum(values, "include", "access")
	if err != nil {
		return err
	}
	limit, after, err := parameters.Paging(values, 1)
	if err != nil {
		return err
	}
	patterns, err := parameters.Accounts(values)
	if err != nil {
		return err
	}
	accounts, err := accountfeeds.With(r.Context(), a.accountFeeds, func(i *accountfeeds.List) ([]*accountfeeds.Account, error) {
		return i.Require(patterns)
	})
	if err != nil {
		return err
	}
	list := listView[accountView]{Total: int64(len(accounts))}
	if after != nil {
		accounts = accountsAfter(accounts, vedette.AccountName(after[0]))
	}
	if len(accounts) > limit {
		accounts = accounts[:limit]
		list.Cursor = parameters.NewCursor(string(accounts[limit-1].Name))
	}
	list.Items, err = a.accountViews(r.Context(), accounts)
	if err != nil {
		return err
	}
	if include == "access" {
		if err := a.addAccess(r, list.Items); err != nil {
			return err
		}
	}
	return rest.WriteJSON(w, r, list)
}

// accountsAfter returns the accounts whose names are greater.
func accountsAfter(accounts []*accountfeeds.Account, name vedette.AccountName) []*accountfeeds.Account {
	at, found := accountfeeds.Search(accounts, name)
	if found {
		at++
	}
	return accounts[at:]
}

// accountViews reads accounts and their feeds, some at a time, because their feeds take more memory
// than their views.
func (a *api) accountViews(ctx context.Context, accounts []*accountfeeds.Account) ([]accountView, error) {
	agents, _ := a.Fleet.Agents(ctx) // of the others, only what they say themselves is missing
	views, errs := make([]accountView, 0, len(accounts)), errorsByAccount(agents)
	for chunk := range slices.Chunk(accounts, accountfeeds.AccountsPerRead) {
		names := namesOf(chunk)
		rows, err := a.Store.AccountsNamed(ctx, names...)
		if err != nil {
			return nil, err
		}
		feeds, err := a.Store.Feeds(ctx, names...)
		if err != nil {
			return nil, err
		}
		byAccount, now := accountfeeds.GroupFeeds(feeds), time.Now()
		for _, row := range rows {
			views = append(views, a.accountView(row, byAccount[row.Name], errs[row.Name], now))
		}
	}
	return views, nil
}

func namesOf(accounts []*accountfeeds.Account) []vedette.AccountName {
	names := make([]vedette.AccountName, len(accounts))
	for n, account := range accounts {
		names[n] = account.Name
	}
	return names
}

func (a *api) getAccount(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters.Parse(r); err != nil {
		return err
	}
	name := vedette.AccountName(r.PathValue("name"))
	rows, err := a.Store.AccountsNamed(r.Context(), name)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		i, err := a.accountFeeds.Get(r.Context())
		if err != nil {
			return err
		}
		return i.NotFound(string(name))
	}
	feeds, err := a.Store.Feeds(r.Context(), name)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, a.accountView(rows[0], feeds, errorsByAccount(a.Fleet.AgentsOf(r.Context(), name))[name], time.Now()))
}

func (a *api) accountView(row registry.Account, feeds []read.FeedStatus, errs []accountError, now time.Time) accountView {
	v := accountView{Name: row.Name, Cluster: clusterView(row.Cluster), Properties: row.Properties, Namespaces: row.Namespaces,
		Agent: row.Holder, Server: row.Server, Registered: timestamp(row.Registered), LastSeen: timestamp(row.LastSeen),
		Orphaned: timestamp(row.Orphaned),
		Feeds:    map[vedette.FeedState]int{}}
	if v.Namespaces == nil {
		v.Namespaces = []string{}
	}
	agent := a.agentState(row.Name)
	if agent.seen.After(row.LastSeen) {
		v.LastSeen = timestamp(agent.seen)
	}
	if agent.connected {
		v.Orphaned = timestamp{}
	}
	// Feeds that RBAC denies have no watermark and would hide that of the other feeds. They are
	// counted as denied.
	b, state := newFreshnessBuilder(), accountState{connected: agent.connected, problem: problemOf(errs), feeds: map[vedette.FeedState]int{}}
	v.Verified = timestamp(oldestVerified(feeds))
	for _, f := range feeds {
		v.Objects += f.Objects
		v.DriftObjects += f.Drift
		state.feeds[f.State]++
		if f.State != vedette.FeedDenied {
			b.add(a.feedFreshness(f, agent, now))
		}
	}
	fresh := b.freshness()
	v.Watermark, v.LagMs = fresh.Watermark, lagOf(time.Time(fresh.Watermark), now)
	// Before the first feed is declared, nothing is known about the cluster, nor while it denies all of them.
	v.Stale = !agent.connected || state.feeds[vedette.FeedDenied] == len(feeds) || fresh.Stale || isStalled(errs)
	state.stale = v.Stale
	v.Status, v.Feeds = state.status(), state.feeds
	if live := state.feeds[vedette.FeedLive]; live > 0 && !a.isFresh(agent, now) {
		v.Feeds = maps.Clone(state.feeds)
		delete(v.Feeds, vedette.FeedLive)
		v.Feeds[feedStale] = live
	}
	v.Message = joinMessages(accountMessage(errs, feeds, agent.connected), a.takeoverMessage(row, feeds, errs))
	for _, e := range errs {
		if e.role == Cacher {
			for _, c := range e.conditions {
				v.Conditions = append(v.Conditions, newConditionView(c))
			}
		}
		if e.conflict != nil {
			v.Conflicts = append(v.Conflicts, conflictView{e.agent, clusterView(*e.conflict)})
		}
	}
	return v
}

// takeoverMessage returns what prevents that this server answers for an account that the Clouddriver behind it has too.
func (a *api) takeoverMessage(row registry.Account, feeds []read.FeedStatus, errs []accountError) string {
	if !a.HasUpstream || !row.Complete.IsZero() {
		return ""
	}
	problem := problemOf(errs)
	missing := rules.ProgressOf(feeds, problem != "" && problem != vedette.Waiting).Missing
	if missing == "" {
		return "" // it is recorded soon
	}
	return "for Spinnaker, the Clouddriver at upstream.baseUrl answers for this account if it has it: " + missing
}

func joinMessages(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// oldestVerified returns when the live feed that was verified longest ago was verified.
func oldestVerified(feeds []read.FeedStatus) (oldest time.Time) {
	first := true
	for _, f := range feeds {
		if f.State == vedette.FeedLive && (first || f.Verified.Before(oldest)) {
			oldest, first = f.Verified, false
		}
	}
	return oldest
}

type accountError struct {
	agent           vedette.AgentID
	role            Role
	kind            vedette.ErrorKind
	message, notice string
	conflict        *vedette.Cluster // see AgentAccount
	stalled         bool
	conditions      []vedette.Condition
}

// problemOf returns the kind of the error that the account's agent reports.
func problemOf(errs []accountError) vedette.ErrorKind {
	for _, e := range errs {
		if e.role == Cacher {
			return e.kind
		}
	}
	return ""
}

// isStalled reports whether changes of the account wait for the database. The data is then behind at
// once, while its feeds count as live until their reports are late.
func isStalled(errs []accountError) bool {
	return slices.ContainsFunc(errs, func(e accountError) bool { return e.role == Cacher && e.stalled })
}

func errorsByAccount(agents []Agent) map[vedette.AccountName][]accountError {
	errs := map[vedette.AccountName][]accountError{}
	for _, agent := range agents {
		for _, a := range agent.Accounts {
			if a.Message != "" || a.Notice != "" || len(a.Conditions) > 0 {
				errs[a.Name] = append(errs[a.Name], accountError{agent.ID, a.Role, a.ErrorKind, a.Message, a.Notice, a.Conflict, a.Stalled,
					a.Conditions})
			}
		}
	}
	return errs
}

// accountMessage returns the error of the account's agent, which feeds the cluster denies, and
// what is wrong with the registrations of other agents. If no agent reports the account, it
// returns why those that are configured with it do not.
func accountMessage(errs []accountError, feeds []read.FeedStatus, connected bool) string {
	var messages []string
	for _, e := range errs {
		if e.role == Cacher || !connected {
			messages = append(messages, conditionMessages(e.conditions)...)
		}
		switch {
		case e.role == Cacher && e.message != "":
			messages = append(messages, e.message)
		case e.role != Cacher && e.notice != "":
			messages = append(messages, "agent "+string(e.agent)+": "+e.notice)
		case e.message != "" && !connected:
			messages = append(messages, "agent "+string(e.agent)+": "+e.message)
		}
	}
	if denied := deniedText(feeds); denied != "" && connected {
		messages = append(messages, denied)
	}
	return strings.Join(messages, "; ")
}

// conditionMessages returns the messages of the conditions that do not hold.
func conditionMessages(conditions []vedette.Condition) (messages []string) {
	for _, c := range conditions {
		if !c.Holds && c.Message != "" {
			messages = append(messages, c.Message)
		}
	}
	return messages
}
