package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// accountView is an account with the state of its cluster, its agent and its feeds.
type accountView struct {
	Name       vedette.AccountName       `json:"name"`
	Cluster    clusterView               `json:"cluster"`
	Properties vedette.Properties        `json:"properties"`
	Namespaces []string                  `json:"namespaces"`
	Agent      vedette.AgentID           `json:"agent,omitempty"`  // the agent that reports it; empty if there is none
	Server     vedette.ServerID          `json:"server,omitempty"` // the server that the agent is connected to
	Registered timestamp                 `json:"registered"`
	LastSeen   timestamp                 `json:"lastSeen"`
	Orphaned   timestamp                 `json:"orphaned"` // since when no agent is connected; null if one is
	Objects    int64                     `json:"objects"`
	Feeds      map[vedette.FeedState]int `json:"feeds"` // number of feeds by state
	Watermark  timestamp                 `json:"watermark"`
	LagMs      *int64                    `json:"lagMs"`
	Stale      bool                      `json:"stale"`
	// why its agent cannot report it, and conflicting registrations of other agents
	Message string `json:"message,omitempty"`
}

type clusterView struct {
	UID         string `json:"uid,omitempty"`
	Host        string `json:"host"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Version     string `json:"version,omitempty"`
}

func (a *api) listAccounts(w http.ResponseWriter, r *http.Request) error {
	values, err := parseParameters(r, "account")
	if err != nil {
		return err
	}
	patterns := listValues(values, "account")
	i, err := withInventory(r.Context(), a.inventory, func(i *inventory) (*inventory, error) {
		_, err := i.matchAccounts(patterns)
		return i, err
	})
	if err != nil {
		return err
	}
	items, now, errs := []accountView{}, time.Now(), errorsByAccount(a.Fleet.Agents())
	for _, row := range i.accounts {
		if len(patterns) == 0 || matchAny(patterns, row.Name) {
			items = append(items, a.accountView(row, i.feedsByAccount[row.Name], errs[row.Name], now))
		}
	}
	return writeJSON(w, r, listView[accountView]{Items: items, Total: int64(len(items))})
}

func (a *api) getAccount(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	name := vedette.AccountName(r.PathValue("name"))
	view, err := withInventory(r.Context(), a.inventory, func(i *inventory) (accountView, error) {
		row, ok := i.account(name)
		if !ok {
			return accountView{}, i.accountNotFound(string(name))
		}
		return a.accountView(row, i.feedsByAccount[name], errorsByAccount(a.Fleet.Agents())[name], time.Now()), nil
	})
	if err != nil {
		return err
	}
	return writeJSON(w, r, view)
}

func (a *api) accountView(row store.AccountRow, feeds []store.FeedStatus, errs []accountError, now time.Time) accountView {
	v := accountView{Name: row.Name, Cluster: clusterView(row.Cluster), Properties: row.Properties, Namespaces: row.Namespaces,
		Agent: row.Holder, Server: row.Server, Registered: timestamp(row.Registered), LastSeen: timestamp(row.LastSeen),
		Orphaned: timestamp(row.Orphaned),
		Feeds:    map[vedette.FeedState]int{}}
	if v.Namespaces == nil {
		v.Namespaces = []string{}
	}
	seen, connected := a.Fleet.Freshness(row.Name)
	if seen.After(row.LastSeen) {
		v.LastSeen = timestamp(seen)
	}
	if connected {
		v.Orphaned = timestamp{}
	}
	feedFreshnesses := make([]feedFreshness, len(feeds))
	for i, f := range feeds {
		v.Objects += f.Objects
		v.Feeds[f.State]++
		feedFreshnesses[i] = a.feedFreshness(f, now)
	}
	v.Watermark, v.LagMs = overallWatermark(feedFreshnesses, now)
	// Before the first feed is declared, nothing is known about the cluster.
	v.Stale = !connected || len(feeds) == 0 || slices.ContainsFunc(feedFreshnesses, isLagging)
	v.Message = accountErrorText(errs, row.Holder)
	return v
}

// accountError is one agent's error about an account.
type accountError struct {
	agent           vedette.AgentID
	message, notice string
}

// errorsByAccount indexes the errors of all agents by account.
func errorsByAccount(agents []Agent) map[vedette.AccountName][]accountError {
	errs := map[vedette.AccountName][]accountError{}
	for _, agent := range agents {
		for _, a := range agent.Accounts {
			if a.Message != "" || a.Notice != "" {
				errs[a.Name] = append(errs[a.Name], accountError{agent.ID, a.Message, a.Notice})
			}
		}
	}
	return errs
}

// accountErrorText returns the error of the account's agent, and what is wrong with the
// registrations of other agents.
func accountErrorText(errs []accountError, holder vedette.AgentID) string {
	var messages []string
	for _, r := range errs {
		switch {
		case r.agent == holder && r.message != "":
			messages = append(messages, r.message)
		case r.agent != holder && r.notice != "":
			messages = append(messages, "agent "+string(r.agent)+": "+r.notice)
		}
	}
	return strings.Join(messages, "; ")
}

// overallWatermark returns the watermark that all feeds have reached. Feeds that RBAC denies
// are left out, because they have no watermark and would hide that of the other feeds; they
// are counted as denied.
func overallWatermark(feeds []feedFreshness, now time.Time) (timestamp, *int64) {
	all := freshness{Feeds: slices.DeleteFunc(slices.Clone(feeds), func(f feedFreshness) bool { return f.State == vedette.FeedDenied })}
	watermark := all.watermark()
	if watermark.IsZero() {
		return timestamp{}, nil
	}
	lag := max(0, now.Sub(watermark).Milliseconds())
	return timestamp(watermark), &lag
}

func isLagging(f feedFreshness) bool { return f.Stale && f.State != vedette.FeedDenied }
