package infrastructure

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/store/registry"
	storeversions "github.com/vedette-io/vedette/server/store/versions"
)

// fakeAccounts holds accounts, and remembers which were read.
type fakeAccounts struct {
	accounts map[vedette.AccountName]vedette.Properties
	log      []vedette.AccountName // of changes
	reads    []string
}

func (l *fakeAccounts) Accounts(context.Context) ([]registry.Account, error) {
	l.reads = append(l.reads, "all")
	return l.rows(slices.Collect(maps.Keys(l.accounts))), nil
}

func (l *fakeAccounts) AccountsNamed(_ context.Context, names ...vedette.AccountName) ([]registry.Account, error) {
	l.reads = append(l.reads, fmt.Sprint(names))
	return l.rows(names), nil
}

func (l *fakeAccounts) rows(names []vedette.AccountName) []registry.Account {
	var rows []registry.Account
	for _, name := range names {
		if properties, ok := l.accounts[name]; ok {
			rows = append(rows, registry.Account{Account: vedette.Account{Name: name, Properties: properties}})
		}
	}
	return rows
}

func (l *fakeAccounts) AccountsVersion() uint64 { return uint64(len(l.log)) }

func (l *fakeAccounts) ChangedAccounts(since uint64) storeversions.AccountChanges {
	changed := slices.Clone(l.log[since:])
	slices.Sort(changed)
	return storeversions.AccountChanges{Names: slices.Compact(changed), Mark: uint64(len(l.log))}
}

func (l *fakeAccounts) put(name vedette.AccountName, properties vedette.Properties) {
	l.accounts[name] = properties
	l.log = append(l.log, name)
}

func (l *fakeAccounts) remove(name vedette.AccountName) {
	delete(l.accounts, name)
	l.log = append(l.log, name)
}

func TestSettingsReadWhatChanged(t *testing.T) {
	strict := vedette.Properties{OnlySpinnakerManaged: true}
	l := &fakeAccounts{accounts: map[vedette.AccountName]vedette.Properties{"a": {}, "b": strict}}
	c := settingsCache{accounts: accountlist.NewCache(l), applications: allApplications{}}
	for _, tt := range []struct {
		step string
		do   func()
		read string
		same bool // the same pointer as before
	}{
		{"the first time", func() {}, "[all]", false},
		{"nothing has changed", func() {}, "[]", true},
		{"an agent registers the same again", func() { l.put("b", strict) }, "[[b]]", true},
		{"a new account", func() { l.put("c", vedette.Properties{CacheAllRelationships: true}) }, "[[c]]", false},
		{"a property", func() { l.put("a", strict) }, "[[a]]", false},
		{"an account is removed, another one is replaced", func() { l.remove("b"); l.put("d", strict) }, "[[b d]]", false},
		{"a permission", func() {
			l.put("d", vedette.Properties{OnlySpinnakerManaged: true, Permissions: &vedette.Permissions{}})
		}, "[[d]]", false},
		{"very many", func() {
			for i := range 501 {
				l.put(vedette.AccountName(fmt.Sprint("many-", i)), vedette.Properties{})
			}
		}, "[all]", false},
	} {
		before := c.settings.Last()
		l.reads = nil
		tt.do()
		s, err := c.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(l.reads) != tt.read || (s == before) != tt.same {
			t.Errorf("%s: got the reads %s and the same settings: %v, want %s and %v", tt.step, l.reads, s == before, tt.read, tt.same)
		}
		expectSettings(t, tt.step, s, l)
	}
}

// expectSettings compares settings with those that are read at once.
func expectSettings(t *testing.T, step string, s *Settings, l *fakeAccounts) {
	t.Helper()
	got, onlyManaged, relatesAll := map[vedette.AccountName]vedette.Properties{}, map[vedette.AccountName]bool{}, map[vedette.AccountName]bool{}
	for _, name := range s.Accounts() {
		got[name] = s.Properties(name)
	}
	for name, p := range l.accounts {
		if p.OnlySpinnakerManaged {
			onlyManaged[name] = true
		}
		if p.CacheAllRelationships {
			relatesAll[name] = true
		}
	}
	if !reflect.DeepEqual(got, l.accounts) || !maps.Equal(s.OnlyManaged, onlyManaged) || !maps.Equal(s.RelatesAll, relatesAll) {
		t.Errorf("%s: got %v, want %v", step, got, l.accounts)
	}
}

func TestSettingsAfterRandomChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	l := &fakeAccounts{accounts: map[vedette.AccountName]vedette.Properties{}}
	c := settingsCache{accounts: accountlist.NewCache(l), applications: allApplications{}}
	for i := range 500 {
		for range random.IntN(4) {
			name := vedette.AccountName(fmt.Sprint(random.IntN(8)))
			if random.IntN(3) == 0 {
				l.remove(name)
				continue
			}
			l.put(name, vedette.Properties{OnlySpinnakerManaged: random.IntN(2) == 0, CacheAllRelationships: random.IntN(2) == 0})
		}
		s, err := c.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expectSettings(t, fmt.Sprint("step ", i), s, l)
	}
}
