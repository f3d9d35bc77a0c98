package infrastructure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/server/store/read"
)

// Rows are the objects from which an Application is built. An object may be in several lists.
type Rows struct {
	Own         []Object // objects of LogicalKinds that belong to the application
	Pods        []Object // owned by its server groups
	ReplicaSets []Object // owned by its Deployments
	Services    []Object // of other applications, in the namespaces of its ReplicaSets and StatefulSets
	Workloads   []Object // ReplicaSets and StatefulSets of other applications, in the namespaces of its Services
	// WorkloadPods are owned by those Workloads that only belong to the application's Services.
	WorkloadPods []Object

	// own, pods, replicaSets and services refer to the rows above. Rows of one state of an
	// application share most of them with the next state, so they have no lists of their own.
	own, pods, replicaSets, services []*Object

	Visibility
}

// visible returns pointers to the objects that views show, without a copy.
func (r *Rows) visible(objects []Object) []*Object { return r.shown(pointers(objects)) }

func (r *Rows) shown(objects []*Object) []*Object {
	list := make([]*Object, 0, len(objects))
	for _, o := range objects {
		if r.Shows(o) {
			list = append(list, o)
		}
	}
	return list
}

// referred returns the rows with lists of pointers. It is r itself if it has them.
func (r *Rows) referred() *Rows {
	if r.own != nil {
		return r
	}
	return &Rows{Visibility: r.Visibility,
		own: pointers(r.Own), pods: pointers(r.Pods), replicaSets: pointers(r.ReplicaSets), services: pointers(r.Services)}
}

func pointers(objects []Object) []*Object {
	list := make([]*Object, len(objects))
	for i := range objects {
		list[i] = &objects[i]
	}
	return list
}

// Build returns the application of a name. It keeps references to the rows. It needs neither Workloads
// nor WorkloadPods.
func Build(name string, rows *Rows) *Application {
	rows = rows.referred()
	a := &Application{Name: name}
	for _, o := range rows.shown(rows.own) {
		a.accounts = append(a.accounts, o.Account)
		switch kind := o.Kind; {
		case slices.Contains(ServerGroupKinds, kind):
			a.ServerGroups = append(a.ServerGroups, &ServerGroup{Object: o})
		case slices.Contains(ManagerKinds, kind):
			a.Managers = append(a.Managers, &Manager{Object: o})
		case slices.Contains(LoadBalancerKinds, kind):
			a.LoadBalancers = append(a.LoadBalancers, o)
		case slices.Contains(SecurityGroupKinds, kind):
			a.SecurityGroups = append(a.SecurityGroups, o)
		}
	}
	for _, g := range a.ServerGroups {
		g.Manager = managerOf(g.Object)
	}
	addInstances(a.ServerGroups, rows.shown(rows.pods))
	addServices(a.ServerGroups, newServiceIndex(a.LoadBalancers, rows.shown(rows.services)))
	addManaged(a.Managers, slices.Concat(serverGroupObjects(a.ServerGroups), rows.shown(rows.replicaSets)))
	a.sort()
	a.clusters = clustersOf(a)
	return a
}

// Balance returns the load balancers with all server groups that they send traffic to. It needs
// Workloads and WorkloadPods only.
func (a *Application) Balance(rows *Rows) []*LoadBalancer {
	others := a.balancedOthers(rows)
	addInstances(others, rows.visible(rows.WorkloadPods))
	balancers := make([]*LoadBalancer, len(a.LoadBalancers))
	for i, o := range a.LoadBalancers {
		balancers[i] = &LoadBalancer{Object: o}
	}
	addServerGroups(balancers, slices.Concat(a.ServerGroups, others))
	return balancers
}

// balancedOthers returns those workloads of other applications that get traffic from the
// application's Services.
func (a *Application) balancedOthers(rows *Rows) []*ServerGroup {
	others := otherServerGroups(a.ServerGroups, rows.visible(rows.Workloads))
	addServices(others, newServiceIndex(a.LoadBalancers))
	return slices.DeleteFunc(others, func(g *ServerGroup) bool { return len(g.Services) == 0 })
}

// OtherOwners returns the workloads of other applications that get traffic from the application's
// Services. Their Pods are the rows WorkloadPods.
func (a *Application) OtherOwners(rows *Rows) []read.OwnerRef {
	var owners []read.OwnerRef
	for _, g := range a.balancedOthers(rows) {
		owners = append(owners, read.OwnerRef{Account: g.Account, UID: g.UID})
	}
	return owners
}

// otherServerGroups returns the workloads that are not among the server groups.
func otherServerGroups(known []*ServerGroup, workloads []*Object) []*ServerGroup {
	seen := make(map[read.OwnerRef]bool, len(known))
	for _, g := range known {
		seen[read.OwnerRef{Account: g.Account, UID: g.UID}] = true
	}
	var others []*ServerGroup
	for _, w := range workloads {
		if !seen[read.OwnerRef{Account: w.Account, UID: w.UID}] {
			others = append(others, &ServerGroup{Object: w, Manager: managerOf(w)})
		}
	}
	return others
}

func serverGroupObjects(groups []*ServerGroup) []*Object {
	objects := make([]*Object, len(groups))
	for i, g := range groups {
		objects[i] = g.Object
	}
	return objects
}

func (a *Application) sort() {
	sortBy(a.ServerGroups, func(g *ServerGroup) *Object { return g.Object })
	sortBy(a.Managers, func(m *Manager) *Object { return m.Object })
	sortBy(a.LoadBalancers, func(o *Object) *Object { return o })
	sortBy(a.SecurityGroups, func(o *Object) *Object { return o })
	slices.Sort(a.accounts)
	a.accounts = slices.Compact(a.accounts)
}

func sortBy[T any](list []T, object func(T) *Object) {
	slices.SortFunc(list, func(x, y T) int { return compareObjects(object(x), object(y)) })
}

// compareObjects orders by account, namespace, kind and name. Clouddriver's lists have no order;
// ours have one, so that an unchanged list has the same bytes.
func compareObjects(x, y *Object) int {
	return cmp.Or(strings.Compare(string(x.Account), string(y.Account)), strings.Compare(x.Namespace, y.Namespace),
		strings.Compare(x.Kind.Name, y.Kind.Name), strings.Compare(x.Name, y.Name))
}
