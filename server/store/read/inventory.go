package read

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Inventory is which applications exist and of which clusters they consist. It does not change:
// as long as nothing changes in the database, Store.Inventory returns the same pointer, and as
// long as nothing changes in an application, its Application is the same pointer.
//
// It is counted and kept, because Fiat and Deck ask for all applications with the names of their clusters, and a GROUP BY
// over 1,000,000 objects takes seconds. 5,000 accounts with 20,000 applications and 100,000 clusters: 0.2 s the first time, 2
// ms after one account has changed, 0.2 µs otherwise, and 24 MB. A transaction whose outcome is not known counts at once,
// because it may be stored, and again when it has certainly ended. Otherwise a reader in between could keep what was stored
// before for ever. Only one server writes a database, so its memory is enough.
//
// Not chosen: triggers (three dialects, and each row would pay), a view of the database (counts rows when read), a table of
// versions (a row that every commit of every account would lock).
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
	if len(clusters) == 0 || clusters[0].Name != catalog.Unclustered {
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

// inventory keeps the latest Inventory.
type inventory struct {
	reading *admission.Semaphore // one reader at a time
	current *Inventory           // guarded by reading; nil before the first read

	warnings logthrottle.Limiter
}

// Inventory returns which applications and clusters exist. It reads only the accounts that have
// changed since the last call, in one statement, or nothing if none has.
func (r *Reader) Inventory(ctx context.Context) (*Inventory, error) {
	if err := r.db.CheckLease(ctx); err != nil {
		return nil, err
	}
	r.versions.Refresh()
	v := &r.inventory
	turn, err := v.reading.Acquire(ctx)
	if err != nil {
		return nil, r.db.WrapError("wait for the clusters of applications", err)
	}
	defer turn.Release()
	stale, all := r.versions.StaleClusters.Take()
	if v.current != nil && len(stale) == 0 && !all {
		return v.current, nil
	}
	previous := v.current
	if all {
		previous = nil
	}
	next, err := r.readInventory(ctx, previous, stale)
	if err != nil {
		r.versions.StaleClusters.Restore(stale, all)
		return nil, r.db.WrapError("read the clusters of applications", err)
	}
	v.current = next
	return next, nil
}

// maxStaleAccounts is up to how many accounts are read by name. If more have changed, all are
// read.
const maxStaleAccounts = 1000

// readInventory reads the accounts that have changed since an inventory, which is nil the first
// time.
func (r *Reader) readInventory(ctx context.Context, previous *Inventory, stale map[vedette.AccountName]bool) (*Inventory, error) {
	if previous == nil || len(stale) > maxStaleAccounts {
		read, err := r.readClusters(ctx, nil)
		return newInventory(nil).with(slices.Sorted(maps.Keys(read)), read), err
	}
	names := slices.Sorted(maps.Keys(stale))
	read, err := r.readClusters(ctx, names)
	return previous.with(names, read), err
}

// storedCluster is a row of clusters.
type storedCluster struct {
	application string
	Cluster
}

// readClusters reads the clusters of accounts, or of all accounts if none is given.
func (r *Reader) readClusters(ctx context.Context, accounts []vedette.AccountName) (map[vedette.AccountName][]applicationClusters, error) {
	read := map[vedette.AccountName][]storedCluster{}
	left := map[vedette.AccountName]int{} // beyond the limit
	where, args := registry.AccountCondition(accounts)
	err := r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var name string
		var c storedCluster
		err := rows.Scan(&name, &c.application, &c.Name, &c.Objects, &c.Managed)
		account := vedette.AccountName(name)
		if len(read[account]) == r.maxClusters {
			left[account]++
			return err
		}
		read[account] = append(read[account], c)
		return err
	}, sqldb.Named("read clusters", `SELECT a.name, c.application, c.cluster, c.objects, c.managed FROM accounts a JOIN clusters c ON c.account_id = a.id WHERE `+where), args...)
	r.warnOfClusters(left)
	grouped := make(map[vedette.AccountName][]applicationClusters, len(read))
	for account, clusters := range read {
		grouped[account] = groupByApplication(clusters)
	}
	return grouped, err
}

// warnOfClusters logs which accounts have more clusters than the inventory lists. One account
// could fill the memory of all otherwise: each object may name a cluster of its own.
func (r *Reader) warnOfClusters(left map[vedette.AccountName]int) {
	for account, n := range left {
		if _, ok := r.inventory.warnings.Allow(); ok {
			r.db.Log.Warn("account has more of Spinnaker's clusters than the limit; the rest is missing from lists of applications",
				"account", account, "limit", r.maxClusters, "missing", n)
		}
	}
}

func groupByApplication(clusters []storedCluster) []applicationClusters {
	slices.SortFunc(clusters, func(a, b storedCluster) int {
		return catalog.ClusterKey{Application: a.application, Cluster: a.Name}.Compare(catalog.ClusterKey{Application: b.application,
			Cluster: b.Name})
	})
	var groups []applicationClusters
	for _, c := range clusters {
		if len(groups) == 0 || groups[len(groups)-1].application != c.application {
			groups = append(groups, applicationClusters{application: c.application})
		}
		last := &groups[len(groups)-1]
		last.clusters = append(last.clusters, c.Cluster)
	}
	return groups
}
