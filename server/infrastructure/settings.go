package infrastructure

import (
	"context"
	"maps"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/store/read"
)

// applicationSet decides which applications may be shown.
type applicationSet interface {
	// Snapshot returns a function that reports whether an application may be shown, and a version that
	// changes with what it reports. The version is allKnown if all may be shown.
	Snapshot() (known func(application string) bool, version uint64)
}

// allKnown is the version of applicationSets that show all applications.
const allKnown = 0

type allApplications struct{}

func (allApplications) Snapshot() (func(string) bool, uint64) {
	return func(string) bool { return true }, allKnown
}

// Settings are the properties of all accounts that views depend on. They are read-only.
type Settings struct {
	Visibility
	// RelatesAll are the accounts in which objects of all kinds belong to applications
	// (cacheAllApplicationRelationships).
	RelatesAll   map[vedette.AccountName]bool
	accounts     *accountlist.List
	knownVersion uint64
}

// Properties returns the properties of an account.
func (s *Settings) Properties(account vedette.AccountName) vedette.Properties {
	if row := s.accounts.Row(account); row != nil {
		return row.Properties
	}
	return vedette.Properties{}
}

// SearchRules are ShowsKind for searches. There are none if all applications may be shown.
func (s *Settings) SearchRules() []read.ApplicationRule {
	if s.knownVersion == allKnown {
		return nil
	}
	return []read.ApplicationRule{{Shows: s.Known, Kinds: LogicalKinds}}
}

// Accounts returns the names of all accounts, sorted.
func (s *Settings) Accounts() []vedette.AccountName {
	return s.accounts.Names()
}

// Has reports whether an account exists.
func (s *Settings) Has(account vedette.AccountName) bool {
	return s.accounts.Row(account) != nil
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

// settingsCache derives the settings from the accounts and from the applications that may be shown.
type settingsCache struct {
	accounts     *accountlist.Cache
	applications applicationSet
	settings     latest.Value[Settings]
}

// get returns the settings. Unchanged settings are the same pointer.
func (c *settingsCache) get(ctx context.Context) (*Settings, error) {
	accounts, err := c.accounts.Current(ctx)
	if err != nil {
		return nil, err
	}
	known, knownVersion := c.applications.Snapshot()
	isCurrent := func(s *Settings) bool { return s.accounts.IsSince(accounts) && s.knownVersion == knownVersion }
	return c.settings.Get(ctx, isCurrent, func(context.Context, *Settings) (*Settings, error) {
		s := &Settings{accounts: accounts, knownVersion: knownVersion, RelatesAll: map[vedette.AccountName]bool{},
			Visibility: Visibility{Known: known, OnlyManaged: map[vedette.AccountName]bool{}}}
		for name, row := range accounts.Rows() {
			if row.Properties.OnlySpinnakerManaged {
				s.OnlyManaged[name] = true
			}
			if row.Properties.CacheAllRelationships {
				s.RelatesAll[name] = true
			}
		}
		return s, nil
	})
}

// Settings returns the properties of all accounts. Every answer from memory begins with them.
func (r *Reader) Settings(ctx context.Context) (*Settings, error) {
	if err := r.cfg.Store.CheckLease(ctx); err != nil {
		return nil, err
	}
	return r.settings.get(ctx)
}
