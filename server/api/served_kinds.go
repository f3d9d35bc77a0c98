package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/kinds"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
)

// servedKindsView is what clusters serve.
type servedKindsView struct {
	Items []servedKindView `json:"items"`
	// Accounts is the number of all accounts that were asked.
	Accounts int `json:"accounts"`
	// Unknown are accounts whose clusters could not say what they serve.
	Unknown []accountNote `json:"unknown"`
}

// servedKindView is a kind that at least one cluster serves.
type servedKindView struct {
	Name       string              `json:"name,omitempty"` // that the request has for it
	Kind       string              `json:"kind"`
	Group      string              `json:"group,omitempty"`
	Version    string              `json:"version"` // that most clusters prefer, or that the name contains
	Versions   []servedVersionView `json:"versions"`
	Plural     string              `json:"plural"`
	Singular   string              `json:"singular,omitempty"`
	ShortNames []string            `json:"shortNames"`
	Namespaced bool                `json:"namespaced"`
	Categories []string            `json:"categories"`
	Verbs      []string            `json:"verbs"`
	// AccountCount is the number of accounts whose clusters serve the kind, as far as it is known.
	AccountCount int `json:"accountCount"`
	// Live is the number of accounts whose agents report the kind, and whose store is up to date.
	Live int `json:"live"`
	// NotLive and NotCached are the other accounts. They are set if the request names kinds.
	NotLive   []accountNote `json:"notLive,omitempty"`
	NotCached []accountNote `json:"notCached,omitempty"`
	// IsCategory is set if the name is that of a category of the kind.
	IsCategory bool `json:"isCategory,omitempty"`
	// RequestedVersion is the version that the name contains.
	RequestedVersion string `json:"requestedVersion,omitempty"`
}

// servedVersionView is a version, and the accounts whose clusters prefer it.
type servedVersionView struct {
	Version      string                `json:"version"`
	AccountCount int                   `json:"accountCount"`
	Accounts     []vedette.AccountName `json:"accounts"` // at most maxKindAccounts, by name
}

// listServedKinds returns the kinds that the clusters of accounts serve: those that names mean, or all.
func (a *api) listServedKinds(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, "account", "name", "namespace")
	if err != nil {
		return err
	}
	names, err := parameters.List(values, "name", parameters.MaxKinds)
	if err != nil {
		return err
	}
	values.Del("name")
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	if err := a.restrictFilter(r, &f); err != nil {
		return err
	}
	i, err := a.resolve(r, &f)
	if err != nil {
		return err
	}
	accounts, reported := i.Accounts, i.Resources
	if f.isRestricted() {
		accounts, reported = f.accounts, accountfeeds.ResourcesOf(f.accounts)
	}
	view := servedKindsView{Items: []servedKindView{}, Accounts: len(accounts), Unknown: []accountNote{}}
	if len(names) == 0 {
		if err := a.addAllKinds(r.Context(), askerOf(r), accounts, &view); err != nil {
			return err
		}
		return rest.WriteJSON(w, r, view)
	}
	for _, name := range names {
		m, err := a.meaningOf(r.Context(), askerOf(r), accounts, reported, name)
		if err != nil {
			return err
		}
		for _, k := range m.kinds {
			item := newServedKindView(k)
			item.Name, item.IsCategory = name, m.isCategory && !k.Matches(name)
			a.addFreshness(&item, k, f.Namespace, time.Now())
			view.Items = append(view.Items, item)
		}
		view.Unknown = append(view.Unknown, m.unknown...)
	}
	return rest.WriteJSON(w, r, view)
}

// What a kind and each of its accounts take in an answer with all kinds, as values and as JSON, in bytes.
const (
	servedKindBytes        = 2 << 10
	servedKindAccountBytes = 64
)

// addAllKinds adds all kinds that clusters serve, ordered as kubectl does: by group and plural.
func (a *api) addAllKinds(ctx context.Context, by asker, accounts []*accountfeeds.Account, view *servedKindsView) error {
	all := map[vedette.Kind]*meantKind{}
	for n, answer := range a.askClusters(ctx, by, accounts, func(*kinds.Catalogue) bool { return false }) {
		if answer.err != nil {
			view.Unknown = append(view.Unknown, accountNote{accounts[n].Name, answer.err.Error(), !errors.Is(answer.err, errNoAgent)})
			continue
		}
		for k := range answer.catalogue.Kinds() {
			known := all[k.Kind]
			if known == nil {
				known = &meantKind{ServedKind: k}
				all[k.Kind] = known
			}
			known.accounts = append(known.accounts, accounts[n])
			known.versions = append(known.versions, k.Version)
		}
	}
	size := int64(len(all)) * servedKindBytes // a fleet can have very many
	for _, k := range all {
		size += int64(len(k.accounts)) * servedKindAccountBytes
	}
	if !readlimit.Hold(ctx, size) {
		return vedette.Errorf(vedette.Unavailable, "the server has no memory for %d kinds: try again when other requests have ended, or name an account",
			len(all))
	}
	for _, k := range all {
		item := newServedKindView(k)
		a.addFreshness(&item, k, "", time.Now())
		item.NotLive, item.NotCached = nil, nil
		view.Items = append(view.Items, item)
	}
	slices.SortFunc(view.Items, func(x, y servedKindView) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Plural, y.Plural), cmp.Compare(x.Kind, y.Kind))
	})
	return nil
}

func newServedKindView(k *meantKind) servedKindView {
	v := servedKindView{Kind: k.Kind.String(), Group: k.Kind.Group, Version: k.Version, Versions: []servedVersionView{},
		Plural: k.Plural, Singular: k.Singular,
		ShortNames: append([]string{}, k.ShortNames...), Namespaced: k.Namespaced, Categories: append([]string{}, k.Categories...),
		Verbs: append([]string{}, k.Verbs...), AccountCount: len(k.accounts), RequestedVersion: k.requested}
	for n, version := range k.versions {
		at := slices.IndexFunc(v.Versions, func(known servedVersionView) bool { return known.Version == version })
		if at < 0 {
			at = len(v.Versions)
			v.Versions = append(v.Versions, servedVersionView{Version: version, Accounts: []vedette.AccountName{}})
		}
		v.Versions[at].AccountCount++
		if len(v.Versions[at].Accounts) < maxKindAccounts {
			v.Versions[at].Accounts = append(v.Versions[at].Accounts, k.accounts[n].Name)
		}
	}
	slices.SortStableFunc(v.Versions, func(x, y servedVersionView) int { return y.AccountCount - x.AccountCount })
	if len(v.Versions) > 0 {
		v.Version = v.Versions[0].Version
	}
	return v
}

// addFreshness says of which accounts the store knows all objects of the kind in a namespace, or in all.
func (a *api) addFreshness(v *servedKindView, k *meantKind, namespace string, now time.Time) {
	for _, account := range k.accounts {
		state := a.feedsOf(account, k, namespace, now)
		switch {
		case !state.cached:
			v.NotCached = append(v.NotCached, accountNote{account.Name, state.reason(), state.connected})
		case state.problem != "":
			v.NotLive = append(v.NotLive, accountNote{account.Name, state.problem, state.connected})
		default:
			v.Live++
		}
	}
}

// feedsState says whether the store knows all objects of a kind.
type feedsState struct {
	connected bool   // an agent is
	cached    bool   // the agent reports the kind, in the version that was asked for
	problem   string // why what is stored may be out of date, or not all; empty if it is neither
}

// feedsOf returns the state of the feeds that report a kind in a namespace, or in all namespaces that the account has. One feed
// that is not live is enough for not knowing.
func (a *api) feedsOf(account *accountfeeds.Account, k *meantKind, namespace string, now time.Time) feedsState {
	agent := a.agentState(account.Name)
	state := feedsState{connected: agent.connected}
	f := filter{kinds: []vedette.Kind{k.Kind}}
	if k.Namespaced {
		f.Namespace = namespace
	}
	for _, feed := range account.Feeds {
		if !f.selectsFeed(feed.Feed) || k.requested != "" && k.requested != feed.Resource.Version {
			continue
		}
		state.cached = true
		fresh := a.feedFreshness(feed, agent, now)
		// The message of a live feed names objects that were left out, for example because they are too large.
		if (fresh.Stale || fresh.Message != "") && state.problem == "" {
			state.problem = fresh.problem()
		}
	}
	if state.cached {
		state.problem = cmp.Or(state.problem, account.LeavesOut(k.Resource, f.Namespace))
	}
	return state
}

// problem says why objects of a feed may be out of date.
func (f feedFreshness) problem() string {
	text := f.Kind + inNamespace(f.Namespace)
	switch {
	case f.State == vedette.FeedLive && f.Message == "":
		return "its agent has not reported for a while"
	case f.State == vedette.FeedLive:
		return f.Message
	case f.Message == "":
		return text + " is " + string(f.State)
	}
	return text + " is " + string(f.State) + " (" + f.Message + ")"
}
