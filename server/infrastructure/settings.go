package infrastructure

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// accountStore reads accounts.
type accountStore interface {
	Accounts(ctx context.Context) ([]store.AccountRow, error)
	AccountsVersion() uint64
}

// applicationSet decides which applications may be shown.
type applicationSet interface {
	// Known returns a function that reports whether an application may be shown, and a version that
	// changes with what it reports.
	Known() (known func(application string) bool, version uint64)
}

// allApplications shows all applications.
type allApplications struct{}

func (allApplications) Known() (func(string) bool, uint64) {
	return func(string) bool { return true }, 0
}

// Settings are the properties of all accounts that views depend on. They are read-only.
type Settings struct {
	version    uint64
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

// settingsCache keeps the settings until an account changes.
type settingsCache struct {
	store        accountStore
	applications applicationSet

	mu      sync.Mutex
	current *Settings // nil before the first read
}

// get returns the settings. While they are read, other callers wait: they would read the same.
func (c *settingsCache) get(ctx context.Context) (*Settings, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version := c.store.AccountsVersion()
	known, knownVersion := c.applications.Known()
	if c.current != nil && c.current.version == version && c.current.knownVersion == knownVersion {
		return c.current, nil
	}
	rows, err := c.store.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	c.current = newSettings(version, rows)
	c.current.Known, c.current.knownVersion = known, knownVersion
	return c.current, nil
}

func newSettings(version uint64, rows []store.AccountRow) *Settings {
	s := &Settings{version: version, Properties: make(map[vedette.AccountName]vedette.Properties, len(rows)),
		OnlyManaged: map[vedette.AccountName]bool{}, RelatesAll: map[vedette.AccountName]bool{}}
	for i := range rows {
		s.Properties[rows[i].Name] = rows[i].Properties
		if rows[i].Properties.OnlySpinnakerManaged {
			s.OnlyManaged[rows[i].Name] = true
		}
		if rows[i].Properties.CacheAllRelationships {
			s.RelatesAll[rows[i].Name] = true
		}
	}
	return s
}

// Settings returns the properties of all accounts.
func (r *Reader) Settings(ctx context.Context) (*Settings, error) { return r.settings.get(ctx) }
