package infrastructure

import (
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// managerOf returns the name of the Deployment that owns an object, as its owner reference gives
// it: like in Clouddriver, the Deployment need not exist.
func managerOf(o *Object) string {
	if o.Owner.Kind.Name == deployment.Name && vedette.IsNativeGroup(o.Owner.Kind.Group) {
		return o.Owner.Name
	}
	return ""
}

// ownerKey identifies an owner. Kubernetes ignores owners in other namespaces, but stores such
// references: anyone who can create Pods could add them to the server groups of others.
type ownerKey struct {
	account        vedette.AccountName
	namespace, uid string
}

func ownerOf(o *Object) ownerKey { return ownerKey{o.Account, o.Namespace, o.Owner.UID} }

// asOwner identifies an object as the owner of others.
func asOwner(o *Object) ownerKey { return ownerKey{o.Account, o.Namespace, o.UID} }

// addInstances adds Pods to the server groups that own them directly. A CronJob has none: its
// Jobs are server groups of their own.
func addInstances(groups []*ServerGroup, pods []*Object) {
	byOwner := make(map[ownerKey][]Instance, len(groups))
	for _, pod := range pods {
		if pod.Owner.UID != "" {
			byOwner[ownerOf(pod)] = append(byOwner[ownerOf(pod)], newInstance(pod))
		}
	}
	for _, g := range groups {
		g.Instances = slices.Clone(byOwner[asOwner(g.Object)])
		sortBy(g.Instances, func(i Instance) *Object { return i.Object })
		// Objects that an agent reports with the same uid own the same Pods, which are read once for each owner.
		g.Instances = slices.CompactFunc(g.Instances, func(x, y Instance) bool { return compareObjects(x.Object, y.Object) == 0 })
		for _, i := range g.Instances {
			g.Counts.add(i)
		}
	}
}

// addManaged adds ReplicaSets to the managers that own them.
func addManaged(managers []*Manager, objects []*Object) {
	byOwner := make(map[ownerKey]*Manager, len(managers))
	for _, m := range managers {
		byOwner[asOwner(m.Object)] = m
	}
	for _, o := range objects {
		if m := byOwner[ownerOf(o)]; m != nil && o.Owner.UID != "" && slices.Contains(ServerGroupKinds, o.Kind) {
			m.ServerGroups = append(m.ServerGroups, o)
		}
	}
	for _, m := range managers {
		sortBy(m.ServerGroups, func(o *Object) *Object { return o })
		m.ServerGroups = slices.CompactFunc(m.ServerGroups, func(x, y *Object) bool { return compareObjects(x, y) == 0 })
	}
}

// addServices adds to server groups the Services that send traffic to them, and those that their
// annotation names.
func addServices(groups []*ServerGroup, index serviceIndex) {
	for _, g := range groups {
		g.Services = index.servicesOf(g.Object)
		for _, s := range g.Services {
			g.LoadBalancers = append(g.LoadBalancers, index.fullNames[s])
		}
		annotated := annotatedLoadBalancers(g.Object)
		g.Disabled = len(g.Services) == 0 && len(annotated) > 0
		g.LoadBalancers = append(g.LoadBalancers, annotated...)
		slices.Sort(g.LoadBalancers)
		g.LoadBalancers = slices.Compact(g.LoadBalancers)
	}
}

// annotatedLoadBalancers returns the load balancers that an object's annotation names, with the
// kinds as Spinnaker writes them. Other texts are left out.
func annotatedLoadBalancers(o *Object) []string {
	var names []string
	for _, full := range o.LoadBalancers {
		if kind, name, err := manifest.SplitName(full); err == nil {
			names = append(names, manifest.KindName(vedette.ParseKind(kind))+" "+name)
		}
	}
	return names
}

// addServerGroups adds to Services the server groups that get traffic from them.
func addServerGroups(balancers []*LoadBalancer, groups []*ServerGroup) {
	byService := make(map[*Object]*LoadBalancer, len(balancers))
	for _, b := range balancers {
		byService[b.Object] = b
	}
	for _, g := range groups {
		for _, s := range g.Services {
			if b := byService[s]; b != nil {
				b.ServerGroups = append(b.ServerGroups, g)
			}
		}
	}
	for _, b := range balancers {
		sortBy(b.ServerGroups, func(g *ServerGroup) *Object { return g.Object })
	}
}
