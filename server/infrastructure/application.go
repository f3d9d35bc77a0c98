// Package infrastructure turns stored objects into what Clouddriver's list views show of an
// application: its server groups with their instances, server group managers, load balancers
// and security groups, and how they relate. Clouddriver has the same word for the objects in
// its cache.
//
// Functions that build an Application are pure. A Reader reads its rows, and keeps it in memory
// while they are unchanged.
package infrastructure

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// Object is a stored object as list views show it.
type Object = read.AttributesRow

// Application is what list views show of an application. It and all it refers to are read-only,
// because requests share it. Lists are sorted by account, namespace, kind and name.
type Application struct {
	Name           string
	ServerGroups   []*ServerGroup
	Managers       []*Manager
	LoadBalancers  []*Object // Services and Ingresses; see Balance for their server groups
	SecurityGroups []*Object

	accounts []vedette.AccountName // that have any of them, sorted
	clusters []*Cluster            // sorted by account and name
}

// Accounts returns the accounts that have objects of the application, sorted.
func (a *Application) Accounts() []vedette.AccountName { return a.accounts }

// ServerGroup is a ReplicaSet, DaemonSet, StatefulSet, Job or CronJob.
type ServerGroup struct {
	*Object
	Instances []Instance
	Counts    InstanceCounts
	// LoadBalancers are the full names of the Services that it gets traffic from, and of those
	// that its annotation names, sorted.
	LoadBalancers []string
	// Services are those of LoadBalancers that exist and relate to it, sorted.
	Services []*Object
	// Manager is the name of the Deployment that owns it; empty if none does.
	Manager string
	// Disabled reports whether its annotation names load balancers, but none sends traffic to it.
	Disabled bool
}

// InstanceCounts are the instances of a server group by state. Total also counts those whose
// state has no counter.
type InstanceCounts struct {
	Total, Up, Down, Unknown int
}

// Manager is a Deployment, with the ReplicaSets that it owns.
type Manager struct {
	*Object
	ServerGroups []*Object
}

// LoadBalancer is a Service or an Ingress. As in Clouddriver, an Ingress has no server groups.
type LoadBalancer struct {
	*Object
	ServerGroups []*ServerGroup
}

// Cluster is the server groups of one account that have the same cluster in their moniker. A
// cluster without server groups has a manager only.
type Cluster struct {
	Application  string
	Account      vedette.AccountName
	Name         string
	ServerGroups []*ServerGroup
}
