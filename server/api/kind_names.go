package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/kinds"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/tables"
)

const (
	// kindsMaxAge is how old the catalogue of a cluster may be if it has what is asked for, and missingKindsMaxAge if it
	// has not: a kind can be defined and used right after.
	kindsMaxAge        = 10 * time.Minute
	missingKindsMaxAge = 3 * time.Second
	// discoveryTimeout bounds how long a request waits for all clusters.
	discoveryTimeout = kinds.Timeout + time.Second
)

// discoverer knows what clusters serve beyond what their agents report.
type discoverer interface {
	Get(ctx context.Context, r kinds.Request, maxAge time.Duration) (*kinds.Catalogue, error)
}

// asker is on whose behalf clusters are asked.
type asker struct {
	source     string
	requester  vedette.Requester
	asksNobody bool // what agents report is enough
}

func askerOf(r *http.Request) asker {
	caller := readlimit.CallerOf(r)
	return asker{source: caller.Source, requester: authorize.RequesterOf(r)}
}

// meaning is what a name of a kind means in some accounts.
type meaning struct {
	name       string
	isCategory bool         // in one of the accounts
	kinds      []*meantKind // in the order of a cluster's groups
	unknown    []accountNote
}

// meantKind is a kind, with the accounts in which a name means it.
type meantKind struct {
	vedette.ServedKind // as the first of the accounts serves it
	accounts           []*accountfeeds.Account
	versions           []string // that the clusters of the accounts prefer; empty if they were not asked
	requested          string   // version that the name contains
}

// accountNote is an account of which something is not known.
type accountNote struct {
	Account   vedette.AccountName `json:"account"`
	Message   string              `json:"message"`
	Connected bool                `json:"connected"` // its cluster can be asked
}

// checkUnique reports an error if the name means another kind in another account. A category may mean several.
func (m *meaning) checkUnique() error {
	if m.isCategory || len(m.kinds) < 2 {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "%.100q means %s in the cluster of %s and %s in that of %s: write one of them", m.name,
		m.kinds[0].Kind, m.kinds[0].accounts[0].Name, m.kinds[1].Kind, m.kinds[1].accounts[0].Name)
}

func (m *meaning) add(k vedette.ServedKind, account *accountfeeds.Account, version string) {
	at := slices.IndexFunc(m.kinds, func(known *meantKind) bool { return known.Kind == k.Kind })
	if at < 0 {
		at = len(m.kinds)
		m.kinds = append(m.kinds, &meantKind{ServedKind: k, requested: version})
	}
	m.kinds[at].accounts = append(m.kinds[at].accounts, account)
	m.kinds[at].versions = append(m.kinds[at].versions, k.Version)
}

// meaningOf returns what a name means in each of the accounts, whose agents report the resources. The name of a kind of
// Kubernetes, or of a kind that an agent reports together with its group, means the same everywhere, unless the group may be a version
// and a group. Otherwise each cluster decides, by what it serves.
func (a *api) meaningOf(ctx context.Context, by asker, accounts []*accountfeeds.Account, reported []vedette.Resource, name string) (
	meaning, error) {
	match := vedette.FindKinds(slices.Concat(reported, tables.KnownResources()), name, resourceItself)
	if k, ok := decidedByName(match, name); ok {
		return meaning{name: name, kinds: []*meantKind{{ServedKind: k, accounts: accounts}}}, nil
	}
	m, candidates, err := a.discoverMeaning(ctx, by, accounts, name)
	if err != nil || len(m.kinds) > 0 {
		return m, err
	}
	for _, r := range slices.Concat(reported, tables.KnownResources()) {
		candidates[tables.NameOf(r, strings.Contains(name, "."))] = true
	}
	hint := nearest.Hint(name, slices.Sorted(maps.Keys(candidates))) // only now a spelling is guessed
	switch {
	case by.asksNobody:
		return m, vedette.Errorf(vedette.UnknownKind, "no agent reports a kind %.100q%s", name, hint)
	case len(m.unknown) == 0:
		return m, vedette.Errorf(vedette.UnknownKind, "no cluster serves a kind or a category %.100q%s", name, hint)
	}
	return m, vedette.Errorf(vedette.Unavailable, "no cluster that answers serves a kind or a category %.100q (it is not known of %s: %s%s)%s", name,
		m.unknown[0].Account, m.unknown[0].Message, andMore(len(m.unknown)-1), hint)
}

func resourceItself(r vedette.Resource) (vedette.Resource, []string) { return r, nil }

// decidedByName returns the kind that a name means, if discovery cannot tell more.
func decidedByName(match vedette.KindMatch[vedette.Resource], name string) (vedette.ServedKind, bool) {
	if len(match.Kinds) == 0 || match.Version != "" {
		return vedette.ServedKind{}, false
	}
	r := match.Kinds[0]
	for _, other := range match.Kinds {
		if other.Kind != r.Kind {
			return vedette.ServedKind{}, false
		}
	}
	isQualified := strings.Contains(name, ".") && !vedette.GroupHasVersion(r.Kind.Group)
	return vedette.ServedKind{Resource: r}, vedette.IsNativeGroup(r.Kind.Group) || isQualified
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("; the same of %d more accounts", n)
}

// discoverMeaning asks the clusters. It also returns the names that they serve, if none of them serves this one.
func (a *api) discoverMeaning(ctx context.Context, by asker, accounts []*accountfeeds.Account, name string) (
	meaning, map[string]bool, error) {
	m, matches := meaning{name: name}, matchCache{name: name, matches: map[*kinds.Catalogue]kinds.Match{}}
	answers := a.askClusters(ctx, by, accounts, func(c *kinds.Catalogue) bool { return len(matches.of(c).Kinds) > 0 })
	if err := context.Cause(ctx); err != nil {
		return m, nil, err
	}
	for n, account := range accounts {
		err := answers[n].err
		if err != nil {
			err = m.addFromFeeds(account, err)
		} else {
			err = m.addMatch(account, answers[n].catalogue, matches.of(answers[n].catalogue))
		}
		if err != nil {
			return m, nil, err
		}
	}
	return m, matches.servedNames(), nil
}

func (m *meaning) addMatch(account *accountfeeds.Account, c *kinds.Catalogue, found kinds.Match) error {
	switch {
	case len(found.Kinds) == 0 && c.MayServe(m.name):
		m.unknown = append(m.unknown,
			accountNote{account.Name, "the API servers of " + strings.Join(c.UnknownGroups, ", ") + " do not respond", true})
		return nil
	case len(found.Kinds) == 0:
		return nil
	case !found.IsCategory && len(found.Kinds) > 1 && found.Kinds[0].Kind.Group == found.Kinds[1].Kind.Group:
		return vedette.Errorf(vedette.Invalid, "%.100q is ambiguous: the cluster of %s serves %s and %s; write one of them", m.name, account.Name,
			found.Kinds[0].Kind, found.Kinds[1].Kind)
	case !found.IsCategory:
		m.add(found.Kinds[0], account, found.Version)
		return nil
	}
	m.isCategory = true
	for _, k := range found.Kinds {
		m.add(k, account, "")
	}
	return nil
}

// addFromFeeds adds what the name means among the kinds that an account's agent reports, because its cluster did not answer.
func (m *meaning) addFromFeeds(account *accountfeeds.Account, err error) error {
	var found kinds.Match
	match := vedette.FindKinds(accountfeeds.ResourcesOf([]*accountfeeds.Account{account}), m.name, resourceItself)
	for _, r := range match.Kinds {
		found.Kinds = append(found.Kinds, vedette.ServedKind{Resource: r})
	}
	// The agent need not report the kind of another group that the name means if the cluster serves it.
	isGuess := match.Version == "" && strings.Contains(m.name, ".") && len(match.Kinds) > 0 &&
		vedette.GroupHasVersion(match.Kinds[0].Kind.Group)
	if len(found.Kinds) > 0 && (!isGuess || errors.Is(err, errNotAsked)) {
		return m.addMatch(account, nil, found)
	}
	if !errors.Is(err, errNotAsked) {
		m.unknown = append(m.unknown, accountNote{account.Name, err.Error(), !errors.Is(err, errNoAgent)})
	}
	return nil
}

// matchCache keeps what a name means in each catalogue, because accounts share catalogues.
type matchCache struct {
	name    string
	mu      sync.Mutex
	matches map[*kinds.Catalogue]kinds.Match
}

func (m *matchCache) of(c *kinds.Catalogue) kinds.Match {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.matches[c]
	if !ok {
		found = c.Match(m.name)
		m.matches[c] = found
	}
	return found
}

// servedNames returns all names of kinds, and of categories, that could have been meant.
func (m *matchCache) servedNames() map[string]bool {
	names := map[string]bool{}
	for c := range m.matches {
		for k := range c.Kinds() {
			names[tables.NameOf(k.Resource, strings.Contains(m.name, "."))] = true
			for _, category := range k.Categories {
				names[category] = true
			}
		}
	}
	return names
}

// clusterAnswer is what the cluster of an account serves, or why that is not known.
type clusterAnswer struct {
	catalogue *kinds.Catalogue
	err       error
}

// askClusters returns what the clusters of accounts serve. A catalogue that does not satisfy the request is read again, unless
// it is new. A cluster that does not answer in time delays the request once, and is then not asked for a while.
func (a *api) askClusters(ctx context.Context, by asker, accounts []*accountfeeds.Account,
	satisfies func(*kinds.Catalogue) bool) []clusterAnswer {
	answers := make([]clusterAnswer, len(accounts))
	if a.kinds == nil || by.asksNobody {
		for n := range answers {
			answers[n].err = errNotAsked
		}
		return answers
	}
	ctx, cancel := context.WithTimeoutCause(ctx, discoveryTimeout, errDiscoveryTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for n, account := range accounts {
		if _, connected := a.Fleet.Freshness(account.Name); !connected {
			answers[n].err = errNoAgent
			continue
		}
		asking.Go(func() {
			r := kinds.Request{Account: account.Name, Cluster: account.Cluster, Caller: by.source, Requester: by.requester}
			c, err := a.kinds.Get(ctx, r, kindsMaxAge)
			if err == nil && !satisfies(c) {
				c, err = a.kinds.Get(ctx, r, missingKindsMaxAge)
			}
			answers[n] = clusterAnswer{c, err}
		})
	}
	asking.Wait()
	return answers
}

var (
	// errNotAsked is of a server that executes no operations.
	errNotAsked         = vedette.Errorf(vedette.Unavailable, "this server does not ask clusters")
	errNoAgent          = vedette.Errorf(vedette.Unavailable, "no agent is connected for this account")
	errDiscoveryTimeout = vedette.Errorf(vedette.Unavailable, "the cluster has not said within %v which kinds it serves", discoveryTimeout)
)
