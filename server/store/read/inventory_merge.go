package read

import (
	"cmp"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

// newInventory returns a copy of an inventory, which may be nil.
func newInventory(v *Inventory) *Inventory {
	if v == nil {
		return &Inventory{applications: map[string]*Application{}, accounts: map[vedette.AccountName][]applicationClusters{}}
	}
	return &Inventory{names: v.names, applications: maps.Clone(v.applications), accounts: maps.Clone(v.accounts)}
}

// with returns an inventory in which the clusters of accounts, which are sorted, are replaced. It
// is v itself if all are as before. Applications that have not changed stay the same pointers.
func (v *Inventory) with(accounts []vedette.AccountName, read map[vedette.AccountName][]applicationClusters) *Inventory {
	changed := map[string][]AccountClusters{} // by application
	for _, account := range accounts {
		diffApplications(v.accounts[account], read[account], func(application string, clusters []Cluster) {
			changed[application] = append(changed[application], newAccountClusters(account, clusters))
		})
	}
	if len(changed) == 0 {
		return v
	}
	next := newInventory(v)
	for _, account := range accounts {
		next.accounts[account] = read[account]
		if len(read[account]) == 0 {
			delete(next.accounts, account)
		}
	}
	for name, accounts := range changed {
		next.replace(name, accounts)
	}
	next.updateNames(v, slices.Sorted(maps.Keys(changed)))
	return next
}

// maxInsertedNames is how many names are inserted one by one. Sorting all takes as long as inserting
// some thousands.
const maxInsertedNames = 100

// updateNames sets the sorted names, which are those of v but for some that have changed. If no
// application appears or disappears, the list stays the same.
func (v *Inventory) updateNames(previous *Inventory, changed []string) {
	changed = slices.DeleteFunc(changed, func(name string) bool {
		return (v.applications[name] == nil) == (previous.applications[name] == nil)
	})
	switch {
	case len(changed) == 0:
		return
	case len(changed) > maxInsertedNames:
		v.names = slices.Sorted(maps.Keys(v.applications))
		return
	}
	names := slices.Clone(v.names)
	for _, name := range changed {
		if i, found := slices.BinarySearch(names, name); found {
			names = slices.Delete(names, i, i+1)
		} else {
			names = slices.Insert(names, i, name)
		}
	}
	v.names = names
}

// diffApplications calls changed with the new clusters of each application whose clusters differ,
// nil if it has none any more. Both lists are sorted by application.
func diffApplications(before, after []applicationClusters, changed func(application string, clusters []Cluster)) {
	for len(before) > 0 || len(after) > 0 {
		order := compareFirst(before, after)
		switch {
		case order < 0:
			changed(before[0].application, nil)
		case order > 0 || !slices.Equal(before[0].clusters, after[0].clusters):
			changed(after[0].application, after[0].clusters)
		}
		if order <= 0 {
			before = before[1:]
		}
		if order >= 0 {
			after = after[1:]
		}
	}
}

// compareFirst compares the first applications of two lists. An empty list comes last.
func compareFirst(a, b []applicationClusters) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return cmp.Compare(a[0].application, b[0].application)
}

// replace replaces the clusters of an application in accounts, which are sorted.
func (v *Inventory) replace(name string, accounts []AccountClusters) {
	var before []AccountClusters
	if previous := v.applications[name]; previous != nil {
		before = previous.Accounts
	}
	merged := make([]AccountClusters, 0, len(before)+len(accounts))
	for _, entry := range before {
		for len(accounts) > 0 && accounts[0].Account < entry.Account {
			merged, accounts = append(merged, accounts[0]), accounts[1:]
		}
		if len(accounts) > 0 && accounts[0].Account == entry.Account {
			entry, accounts = accounts[0], accounts[1:]
		}
		merged = append(merged, entry)
	}
	merged = slices.DeleteFunc(append(merged, accounts...), func(e AccountClusters) bool {
		return len(e.Clusters) == 0 && e.Unclustered.Objects == 0
	})
	if len(merged) == 0 {
		delete(v.applications, name)
		return
	}
	v.applications[name] = &Application{Name: name, Accounts: merged}
}
