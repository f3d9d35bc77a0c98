package infrastructure

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// accountStore reads accounts.
type accountStore interface {
	Accounts(ctx context.Context) ([]store.AccountRow, error)
	AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]store.AccountRow, error)
	AccountsVersion() uint64
	ChangedAccounts(since uint64) (accounts []vedette.AccountName, now uint64)
}

// applicationSet decides which applications may be shown.
type applicationSet interface {
	// Known returns a function that reports whether an application may be shown, and a version that
	// changes with what it reports. The version is allKnown if all may be shown.
	Known() (known func(application string) bool, version uint64)
}

// allKnown is the version of applicationSets that show all applications.
const allKnown = 0

// allApplications shows all applications.
type allApplications struct{}

func (allApplications) Known() (func(string) bool, uint64) {
	return func(string) bool { return true }, allKnown
}

// Settings are the properties of all accounts that views depend on. They are read-only.
type Settings struct {
	Properties map[vedette.AccountName]vedette.Properties
	// OnlyManaged are the accounts that show only objects that Spinnaker deployed.
	OnlyManaged map[vedette.AccountName]bool
	// RelatesAll are the accounts in which objects of all kinds belong to applications
	// (cacheAllApplicationRelationships).
	RelatesAll map[vedette.AccountName]bool
	// Known reports whether an application may be shown.
	Known        func(application string) bool
	knownVersion uint64
}

// Shows reports whether views show an object.
func (s *Settings) Shows(o *Object) bool {
	return !o.Ignored && (o.Managed || !s.OnlyManaged[o.Account]) && s.ShowsKind(o.Kind, o.Moniker.App)
}

// ShowsKind reports whether views show objects of a kind that belong to an application. Only objects
// of LogicalKinds are hidden with their application.
func (s *Settings) ShowsKind(kind vedette.Kind, application string) bool {
	return s.Known(application) || !slices.Contains(LogicalKinds, kind)
}

// SearchRules are ShowsKind for searches. There are none if all applications may be shown.
func (s *Settings) SearchRules() []store.ApplicationRule {
	if s.knownVersion == allKnown {
		return nil
	}
	return []store.ApplicationRule{{Shows: s.Known, Kinds: LogicalKinds}}
}

// Accounts returns the names of all accounts, sorted.
func (s *Settings) Accounts() []vedette.AccountName { return slices.Sorted(maps.Keys(s.Properties)) }

// Has reports whether an account exists.
func (s *Settings) Has(account vedette.AccountName) bool {
	_, ok := s.Properties[account]
	return ok
}

// SameViews reports whether views are the same with other settings.
func (s *Settings) SameViews(other *Settings) bool {
	return s == other || s.knownVersion == other.knownVersion && maps.Equal(s.OnlyManaged, other.OnlyManaged)
}

// sameViewsOf is SameViews for the objects in some accounts.
func (s *Settings) sameViewsOf(other *Settings, namespaces map[namespaceKey]uint64) bool {
	if s == other {
		return true
	}
	if s.knownVersion != other.knownVersion {
		return false
	}
	for key := range namespaces {
		if s.OnlyManaged[key.account] != other.OnlyManaged[key.account] {
			return false
		}
	}
	return true
}

// settingsCache keeps the settings. It reads only accounts that have changed: in a large fleet one
// registers every few seconds.
type settingsCache struct {
	store        accountStore
	applications applicationSet

	mu      sync.Mutex
	current *Settings // nil before the first read
	version uint64    // of the accounts in it
	mark    uint64    // of the store's list of changed accounts
}

// get returns the settings. While they are read, other callers wait: they would read the same.
// Unchanged settings are the same pointer.
func (c *settingsCache) get(ctx context.Context) (*Settings, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version := c.store.AccountsVersion() // before the accounts, so that no change is missed
	if c.current == nil || c.version != version {
		if err := c.refresh(ctx); err != nil {
			return nil, err
		}
		c.version = version
	}
	if known, knownVersion := c.applications.Known(); c.current.Known == nil || c.current.knownVersion != knownVersion {
		next := *c.current
		next.Known, next.knownVersion = known, knownVersion
		c.current = &next
	}
	return c.current, nil
}

// maxNamedAccounts is how many accounts are read by their names. If more have changed, all are
// read.
const maxNamedAccounts = 500

// refresh reads the accounts that have changed, or all if there are no settings yet.
func (c *settingsCache) refresh(ctx context.Context) error {
	changed, mark := c.store.ChangedAccounts(c.mark)
	previous := c.current
	var rows []store.AccountRow
	var err error
	switch {
	case previous == nil || len(changed) > maxNamedAccounts:
		previous = &Settings{}
		if c.current != nil {
			previous.Known, previous.knownVersion = c.current.Known, c.current.knownVersion
		}
		rows, err = c.store.Accounts(ctx)
	case len(changed) > 0:
		rows, err = c.store.AccountsNamed(ctx, changed...)
	}
	if err != nil {
		return err
	}
	c.current, c.mark = previous.with(changed, rows), mark
	return nil
}

// with returns settings in which some accounts are replaced by those of them that exist. It is s
// itself if nothing differs.
func (s *Settings) with(names []vedette.AccountName, rows []store.AccountRow) *Settings {
	if s.Properties != nil && !s.differs(names, rows) {
		return s
	}
	next := *s
	next.Properties, next.OnlyManaged, next.RelatesAll = cloneMap(s.Properties), cloneMap(s.OnlyManaged), cloneMap(s.RelatesAll)
	for _, name := range names {
		delete(next.Properties, name)
		delete(next.OnlyManaged, name)
		delete(next.RelatesAll, name)
	}
	for i := range rows {
		name, properties := rows[i].Name, rows[i].Properties
		next.Properties[name] = properties
		if properties.OnlySpinnakerManaged {
			next.OnlyManaged[name] = true
		}
		if properties.CacheAllRelationships {
			next.RelatesAll[name] = true
		}
	}
	return &next
}

// differs reports whether accounts appeared, changed or disappeared.
func (s *Settings) differs(names []vedette.AccountName, rows []store.AccountRow) bool {
	existing := 0
	for _, name := range names {
		if s.Has(name) {
			existing++
		}
	}
	if existing != len(rows) {
		return true
	}
	for i := range rows {
		if known, ok := s.Properties[rows[i].Name]; !ok || !reflect.DeepEqual(known, rows[i].Properties) {
			return true
		}
	}
	return false
}

// cloneMap is maps.Clone, but returns a map for nil, too.
func cloneMap[V any](m map[vedette.AccountName]V) map[vedette.AccountName]V {
	clone := make(map[vedette.AccountName]V, len(m))
	maps.Copy(clone, m)
	return clone
}

// Settings returns the properties of all accounts. Every answer from memory begins with them.
func (r *Reader) Settings(ctx context.Context) (*Settings, error) {
	if err := r.cfg.Store.CheckLease(ctx); err != nil {
		return nil, err
	}
	return r.settings.get(ctx)
}
