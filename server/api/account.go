package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// accountView is an account with what is known of its cluster, its agent and
// its feeds.
type accountView struct {
	Name       vedette.AccountName       `json:"name"`
	Cluster    clusterView               `json:"cluster"`
	Properties vedette.Properties        `json:"properties"`
	Namespaces []string                  `json:"namespaces"`
	Agent      vedette.AgentID           `json:"agent,omitempty"`  // that reports it; none where no agent does
	Server     vedette.ServerID          `json:"server,omitempty"` // that the agent is connected to
	Registered moment                    `json:"registered"`
	LastSeen   moment                    `json:"lastSeen"`
	Orphaned   moment                    `json:"orphaned"` // since when no agent has been there; null while one is
	Objects    int64                     `json:"objects"`
	Feeds      map[vedette.FeedState]int `json:"feeds"` // how many are in each state
	Watermark  moment                    `json:"watermark"`
	LagMs      *int64                    `json:"lagMs"`
	Stale      bool                      `json:"stale"`
	Message    string                    `json:"message,omitempty"` // what keeps its agent from reporting it, and other agents that register it otherwise
}

type clusterView struct {
	UID         string `json:"uid,omitempty"`
	Host        string `json:"host"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Version     string `json:"version,omitempty"`
}

func (a *api) listAccounts(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters(r, "account")
	if err != nil {
		return err
	}
	patterns := many(values, "account")
	i, err := find(r.Context(), a.catalog, func(i *inventory) (*inventory, error) {
		_, err := i.named(patterns)
		return i, err
	})
	if err != nil {
		return err
	}
	items, now, said := []accountView{}, time.Now(), byAccount(a.Fleet.Agents())
	for _, row := range i.accounts {
		if len(patterns) == 0 || matchAny(patterns, row.Name) {
			items = append(items, a.accountView(row, i.byName[row.Name], said[row.Name], now))
		}
	}
	return writeJSON(w, r, list[accountView]{Items: items, Total: int64(len(items))})
}

func (a *api) getAccount(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	name := vedette.AccountName(r.PathValue("name"))
	view, err := find(r.Context(), a.catalog, func(i *inventory) (accountView, error) {
		row, ok := i.account(name)
		if !ok {
			return accountView{}, i.noAccount(string(name))
		}
		return a.accountView(row, i.byName[name], byAccount(a.Fleet.Agents())[name], time.Now()), nil
	})
	if err != nil {
		return err
	}
	return writeJSON(w, r, view)
}

func (a *api) accountView(row store.AccountRow, feeds []store.FeedStatus, said []remark, now time.Time) accountView {
	v := accountView{Name: row.Name, Cluster: clusterView(row.Cluster), Properties: row.Properties, Namespaces: row.Namespaces,
		Agent: row.Holder, Server: row.Server, Registered: moment(row.Registered), LastSeen: moment(row.LastSeen), Orphaned: moment(row.Orphaned),
		Feeds: map[vedette.FeedState]int{}}
	if v.Namespaces == nil {
		v.Namespaces = []string{}
	}
	seen, connected := a.Fleet.Freshness(row.Name)
	if seen.After(row.LastSeen) {
		v.LastSeen = moment(seen)
	}
	if connected {
		v.Orphaned = moment{}
	}
	fresh := make([]feedFresh, len(feeds))
	for i, f := range feeds {
		v.Objects += f.Objects
		v.Feeds[f.State]++
		fresh[i] = a.fresh(f, now)
	}
	v.Watermark, v.LagMs = overall(fresh, now)
	// Before the first feed is declared nothing is known of the cluster.
	v.Stale = !connected || len(feeds) == 0 || slices.ContainsFunc(fresh, lagging)
	v.Message = trouble(said, row.Holder)
	return v
}

// remark is what is known of an account by way of one agent.
type remark struct {
	agent           vedette.AgentID
	message, notice string
}

// byAccount sorts what is known of accounts by their names, once for a whole list.
func byAccount(agents []Agent) map[vedette.AccountName][]remark {
	said := map[vedette.AccountName][]remark{}
	for _, agent := range agents {
		for _, a := range agent.Accounts {
			if a.Message != "" || a.Notice != "" {
				said[a.Name] = append(said[a.Name], remark{agent.ID, a.Message, a.Notice})
			}
		}
	}
	return said
}

// trouble is what an account's agent says of it, and what is wrong with how other
// agents register it.
func trouble(said []remark, holder vedette.AgentID) string {
	var messages []string
	for _, r := range said {
		switch {
		case r.agent == holder && r.message != "":
			messages = append(messages, r.message)
		case r.agent != holder && r.notice != "":
			messages = append(messages, "agent "+string(r.agent)+": "+r.notice)
		}
	}
	return strings.Join(messages, "; ")
}

// overall returns the watermark that all feeds have reached. A kind that RBAC
// hides has none and would hold back all others for good: it is left out, and
// counted among the denied.
func overall(feeds []feedFresh, now time.Time) (moment, *int64) {
	all := freshness{Feeds: slices.DeleteFunc(slices.Clone(feeds), func(f feedFresh) bool { return f.State == vedette.FeedDenied })}
	mark := all.oldest()
	if mark.IsZero() {
		return moment{}, nil
	}
	lag := max(0, now.Sub(mark).Milliseconds())
	return moment(mark), &lag
}

func lagging(f feedFresh) bool { return f.Stale && f.State != vedette.FeedDenied }
