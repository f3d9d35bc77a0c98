package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// Inventory is which applications exist and of which clusters they consist. It does not change:
// as long as nothing changes in the database, Store.Inventory returns the same pointer, and as
// long as nothing changes in an application, its Application is the same pointer.
type Inventory struct {
	names        []string // sorted
	applications map[string]*Application
	accounts     map[vedette.AccountName][]applicationClusters // sorted by application
}

// Application is an application that has any clusters, load balancers or security groups.
type Application struct {
	Name     string
	Accounts []AccountClusters // sorted by account
}

// AccountClusters are the clusters of an application in one account.
type AccountClusters struct {
	Account  vedette.AccountName
	Clusters []Cluster // sorted by name; may be empty
	// Unclustered counts load balancers and security groups. It has no name.
	Unclustered Cluster
}

func newAccountClusters(account vedette.AccountName, clusters []Cluster) AccountClusters {
	if len(clusters) == 0 || clusters[0].Name != unclustered {
		return AccountClusters{Account: account, Clusters: clusters}
	}
	return AccountClusters{account, clusters[1:], Cluster{Objects: clusters[0].Objects, Managed: clusters[0].Managed}}
}

// Cluster is one of Spinnaker's clusters. Objects with the annotation that hides them from views
// are not counted.
type Cluster struct {
	Name    string
	Objects int64 // server groups and server group managers
	Managed int64 // those of Objects that Spinnaker has deployed
}

// Applications returns the names of all applications, sorted. The caller must not change them.
func (v *Inventory) Applications() []string { return v.names }

// Application returns an application, or nil if no account has any of it. The caller must
// not change it.
func (v *Inventory) Application(name string) *Application { return v.applications[name] }

// applicationClusters are the clusters of one application in an account.
type applicationClusters struct {
	application string
	clusters    []Cluster // sorted by name
}

// inventory keeps the latest Inventory. The zero value is ready.
type inventory struct {
	mu    sync.Mutex
	stale map[vedette.AccountName]bool // accounts whose rows may have changed since they were read

	reading sync.Mutex // one reader at a time
	current *Inventory // guarded by reading; nil before the first read
}

func (v *inventory) markStale(account vedette.AccountName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stale == nil {
		v.stale = map[vedette.AccountName]bool{}
	}
	v.stale[account] = true
}

// takeStale returns the accounts that must be read again, and forgets them.
func (v *inventory) takeStale() map[vedette.AccountName]bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	stale := v.stale
	v.stale = nil
	return stale
}

// Inventory returns which applications and clusters exist. It reads only the accounts that have
// changed since the last call, in one statement, or nothing if none has.
func (s *Store) Inventory(ctx context.Context) (*Inventory, error) {
	s.versions.settleOld()
	v := &s.versions.inventory
	v.reading.Lock()
	defer v.reading.Unlock()
	stale := v.takeStale()
	if v.current != nil && len(stale) == 0 {
		return v.current, nil
	}
	next, err := s.readInventory(ctx, v.current, stale)
	if err != nil {
		for account := range stale {
			v.markStale(account)
		}
		return nil, s.wrapError("read the clusters of applications", err)
	}
	v.current = next
	return next, nil
}

// maxStaleAccounts is up to how many accounts are read by name. If more have changed, all are
// read.
const maxStaleAccounts = 1000

// readInventory reads the accounts that have changed since an inventory, which is nil the first
// time.
func (s *Store) readInventory(ctx context.Context, previous *Inventory, stale map[vedette.AccountName]bool) (*Inventory, error) {
	if previous == nil || len(stale) > maxStaleAccounts {
		read, err := s.readClusters(ctx, nil)
		return newInventory(nil).with(slices.Sorted(maps.Keys(read)), read), err
	}
	names := slices.Sorted(maps.Keys(stale))
	read, err := s.readClusters(ctx, names)
	return previous.with(names, read), err
}

// readClusters reads the clusters of accounts, or of all accounts if none is given.
func (s *Store) readClusters(ctx context.Context, accounts []vedette.AccountName) (map[vedette.AccountName][]applicationClusters, error) {
	type row struct {
		application string
		Cluster
	}
	read := map[vedette.AccountName][]row{}
	where, args := accountCondition(accounts)
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var account string
		var r row
		err := rows.Scan(&account, &r.application, &r.Name, &r.Objects, &r.Managed)
		read[vedette.AccountName(account)] = append(read[vedette.AccountName(account)], r)
		return err
	}, `SELECT a.name, c.application, c.cluster, c.objects, c.managed FROM accounts a JOIN clusters c ON c.account_id = a.id WHERE `+where, args...)
	grouped := make(map[vedette.AccountName][]applicationClusters, len(read))
	for account, rows := range read {
		slices.SortFunc(rows, func(a, b row) int {
			return clusterKey{a.application, a.Name}.compare(clusterKey{b.application, b.Name})
		})
		var groups []applicationClusters
		for _, r := range rows {
			if len(groups) == 0 || groups[len(groups)-1].application != r.application {
				groups = append(groups, applicationClusters{application: r.application})
			}
			last := &groups[len(groups)-1]
			last.clusters = append(last.clusters, r.Cluster)
		}
		grouped[account] = groups
	}
	return grouped, err
}
