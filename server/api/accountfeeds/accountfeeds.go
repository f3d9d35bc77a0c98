// Package accountfeeds keeps the accounts with the states of their feeds, and selects some of them.
package accountfeeds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/store/read"
)

// List is the state at one time. It is immutable.
type List struct {
	checkedAt time.Time     // when the last look for changes began
	position  uint64        // in the store's log of changes, at that time
	readAt    time.Time     // when the last read of all accounts began
	readTook  time.Duration // how long that took
	Accounts  []*Account    // sorted by name
	Kinds     map[vedette.Kind]*Kind
	Resources []vedette.Resource // of all accounts, each kind once, sorted
	Attention []*Account         // accounts with feeds that are not live
}

// Kind is a kind that at least one account reports.
type Kind struct {
	Resource vedette.Resource // as one of the accounts serves it
	total    int              // number of feeds
	feeds    map[string]int   // number of feeds by namespace; "" is all namespaces
}

func cloneKinds(kinds map[vedette.Kind]*Kind) map[vedette.Kind]*Kind {
	clone := make(map[vedette.Kind]*Kind, len(kinds))
	for kind, entry := range kinds {
		clone[kind] = &Kind{entry.Resource, entry.total, maps.Clone(entry.feeds)}
	}
	return clone
}

// Account is an account with its feeds. It is immutable.
type Account struct {
	Name    vedette.AccountName
	Cluster vedette.Cluster
	Feeds   []read.FeedStatus // sorted by kind and namespace
	NotLive []read.FeedStatus

	onlyManaged    bool     // the agent leaves out objects that Spinnaker has not deployed
	omitNamespaces []string // that the agent leaves out
}

// LeavesOut says which objects of a kind an account's agent never reports in a namespace, or in all, although its feeds are live;
// empty for none.
func (e *Account) LeavesOut(resource vedette.Resource, namespace string) string {
	isNamespace := resource.Kind == vedette.Kind{Name: "Namespace"}
	switch {
	case e.onlyManaged && !isNamespace && resource.Kind != vedette.Kind{Group: "apiextensions.k8s.io", Name: "CustomResourceDefinition"}:
		return "its agent reports only objects that Spinnaker has deployed"
	case len(e.omitNamespaces) > 0 && (isNamespace ||
		resource.Namespaced && (namespace == "" || slices.Contains(e.omitNamespaces, namespace))):
		return "its agent leaves out namespaces"
	}
	return ""
}

// CountFeeds returns the number of feeds of some kinds, or of all if there are none, with objects of a namespace, or of all
// namespaces if it is empty.
func (i *List) CountFeeds(kinds []vedette.Kind, namespace string) int {
	n := 0
	if len(kinds) == 0 {
		for _, kind := range i.Kinds {
			n += kind.count(namespace)
		}
		return n
	}
	for _, name := range kinds {
		if kind := i.Kinds[name]; kind != nil {
			n += kind.count(namespace)
		}
	}
	return n
}

// count returns the number of feeds with objects of a namespace, or of all if it is empty.
func (k *Kind) count(namespace string) int {
	if namespace == "" {
		return k.total
	}
	return k.feeds[""] + k.feeds[namespace]
}

// replace replaces the named accounts by those that exist of them. It changes no map or slice in
// place, because earlier lists share them.
func (i *List) replace(names []vedette.AccountName, entries []*Account) {
	gone := make(map[vedette.AccountName]bool, len(names))
	for _, name := range names {
		gone[name] = true
	}
	i.Kinds = cloneKinds(i.Kinds)
	kept := make([]*Account, 0, len(i.Accounts)+len(entries))
	for _, account := range i.Accounts {
		if gone[account.Name] {
			i.count(account, -1)
			continue
		}
		kept = append(kept, account)
	}
	for _, account := range entries {
		i.count(account, 1)
	}
	i.Accounts = append(kept, entries...)
	slices.SortFunc(i.Accounts, func(a, b *Account) int { return cmp.Compare(a.Name, b.Name) })
	i.summarize()
}

// count adds n to the numbers of an account's feeds.
func (i *List) count(account *Account, n int) {
	for _, f := range account.Feeds {
		kind := i.Kinds[f.Feed.Kind]
		if kind == nil {
			kind = &Kind{Resource: f.Resource, feeds: map[string]int{}}
			i.Kinds[f.Feed.Kind] = kind
		}
		kind.total += n
		kind.feeds[f.Feed.Namespace] += n
		if kind.feeds[f.Feed.Namespace] == 0 {
			delete(kind.feeds, f.Feed.Namespace)
		}
		if kind.total == 0 {
			delete(i.Kinds, f.Feed.Kind)
		}
	}
}

// summarize sets what follows from the accounts and kinds.
func (i *List) summarize() {
	i.Attention, i.Resources = nil, nil
	for _, account := range i.Accounts {
		if len(account.NotLive) > 0 {
			i.Attention = append(i.Attention, account)
		}
	}
	for _, kind := range i.Kinds {
		i.Resources = append(i.Resources, kind.Resource)
	}
	slices.SortFunc(i.Resources, func(a, b vedette.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind.Name, b.Kind.Name), cmp.Compare(a.Kind.Group, b.Kind.Group))
	})
}

// Account returns an account, or nil.
func (i *List) Account(name vedette.AccountName) *Account {
	at, ok := Search(i.Accounts, name)
	if !ok {
		return nil
	}
	return i.Accounts[at]
}

// Search returns the position of an account, or where it would be.
func Search(accounts []*Account, name vedette.AccountName) (at int, found bool) {
	return slices.BinarySearchFunc(accounts, name, func(a *Account, name vedette.AccountName) int { return cmp.Compare(a.Name, name) })
}

// Match returns the accounts that match any of the patterns. It fails if a pattern without
// wildcards matches nothing.
func (i *List) Match(patterns parameters.Patterns) ([]*Account, error) {
	var matched []*Account
	for _, p := range patterns.Texts {
		account := i.Account(vedette.AccountName(p))
		switch {
		case parameters.HasWildcards(p):
		case account == nil:
			return nil, i.NotFound(p)
		default:
			matched = append(matched, account)
		}
	}
	if len(patterns.Globs) == 0 {
		slices.SortFunc(matched, func(a, b *Account) int { return cmp.Compare(a.Name, b.Name) })
		return slices.Compact(matched), nil
	}
	matched = nil
	for _, account := range i.Accounts {
		if patterns.Match(account.Name) {
			matched = append(matched, account)
		}
	}
	return matched, nil
}

// Select is Match, or all accounts if there are no patterns.
func (i *List) Select(patterns parameters.Patterns) ([]*Account, error) {
	if patterns.SelectAll() {
		return i.Accounts, nil
	}
	return i.Match(patterns)
}

// Require is Select, but fails if patterns match no account.
func (i *List) Require(patterns parameters.Patterns) ([]*Account, error) {
	accounts, err := i.Select(patterns)
	if err == nil && len(accounts) == 0 && !patterns.SelectAll() {
		err = i.nothingMatches(patterns)
	}
	return accounts, err
}

// nothingMatches is the error if patterns match no account. An answer without anything would look as if the accounts were empty.
func (i *List) nothingMatches(patterns parameters.Patterns) error {
	return vedette.Errorf(vedette.NotFound, "no account matches %.500s: %s", strings.Join(patterns.Texts, ", "),
		nearest.There(i.names(), "accounts"))
}

// maxHintAccounts is the number of names that an unknown name is compared with. More would let
// requests for unknown accounts cost milliseconds.
const maxHintAccounts = 1000

func (i *List) NotFound(name string) error {
	names := i.names()
	hint := ": " + nearest.There(names, "accounts")
	if len(names) <= maxHintAccounts {
		hint = cmp.Or(nearest.Hint(name, names), hint)
	}
	text := fmt.Sprintf("there is no account %.255q", name)
	return &vedette.Error{Kind: vedette.NotFound, Message: text + hint, Err: UnknownError{vedette.AccountName(name), text}}
}

// UnknownError is the cause of the error about an account that is not in the list.
type UnknownError struct {
	Account vedette.AccountName
	Text    string
}

func (e UnknownError) Error() string { return e.Text }

func (i *List) names() []string {
	names := make([]string, len(i.Accounts))
	for at, account := range i.Accounts {
		names[at] = string(account.Name)
	}
	return names
}

// ResourcesOf returns the resources of some accounts, each kind once.
func ResourcesOf(accounts []*Account) []vedette.Resource {
	seen := map[vedette.Kind]bool{}
	var out []vedette.Resource
	for _, a := range accounts {
		for _, f := range a.Feeds {
			if !seen[f.Feed.Kind] {
				seen[f.Feed.Kind] = true
				out = append(out, f.Resource)
			}
		}
	}
	return out
}
