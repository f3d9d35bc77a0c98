package infrastructure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

type clusterKey struct {
	account vedette.AccountName
	name    string
}

// clustersOf groups an application's server groups by account and cluster. Managers have
// clusters too. An object whose name gives no cluster belongs to none.
func clustersOf(a *Application) []*Cluster {
	clusters := map[clusterKey]*Cluster{}
	find := func(o *Object) *Cluster {
		key := clusterKey{o.Account, o.Moniker.Cluster}
		if clusters[key] == nil {
			clusters[key] = &Cluster{Application: a.Name, Account: o.Account, Name: o.Moniker.Cluster}
		}
		return clusters[key]
	}
	for _, g := range a.ServerGroups {
		c := find(g.Object)
		c.ServerGroups = append(c.ServerGroups, g)
	}
	for _, m := range a.Managers {
		find(m.Object)
	}
	list := make([]*Cluster, 0, len(clusters))
	for key, c := range clusters {
		if key.name != "" {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(x, y *Cluster) int {
		return cmp.Or(strings.Compare(string(x.Account), string(y.Account)), strings.Compare(x.Name, y.Name))
	})
	return list
}

// Clusters returns the clusters of all accounts, sorted by account and name.
func (a *Application) Clusters() []*Cluster { return a.clusters }

// ClustersOf returns the clusters of one account, sorted by name.
func (a *Application) ClustersOf(account vedette.AccountName) []*Cluster {
	first, _ := slices.BinarySearchFunc(a.clusters, account, func(c *Cluster, name vedette.AccountName) int {
		return strings.Compare(string(c.Account), string(name))
	})
	last := first
	for last < len(a.clusters) && a.clusters[last].Account == account {
		last++
	}
	return a.clusters[first:last]
}

// Cluster returns a cluster, or nil if there is none.
func (a *Application) Cluster(account vedette.AccountName, name string) *Cluster {
	i, found := slices.BinarySearchFunc(a.clusters, clusterKey{account, name}, func(c *Cluster, key clusterKey) int {
		return cmp.Or(strings.Compare(string(c.Account), string(key.account)), strings.Compare(c.Name, key.name))
	})
	if !found {
		return nil
	}
	return a.clusters[i]
}

// LoadBalancers returns the Services that send traffic to the cluster, sorted, with those server
// groups of the cluster that get it.
func (c *Cluster) LoadBalancers() []*LoadBalancer {
	balancers := map[*Object]*LoadBalancer{}
	var list []*LoadBalancer
	for _, g := range c.ServerGroups {
		for _, s := range g.Services {
			if balancers[s] == nil {
				balancers[s] = &LoadBalancer{Object: s}
				list = append(list, balancers[s])
			}
			balancers[s].ServerGroups = append(balancers[s].ServerGroups, g)
		}
	}
	sortBy(list, func(b *LoadBalancer) *Object { return b.Object })
	return list
}
