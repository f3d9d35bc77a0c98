package clouddriver

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// serverGroupSummary appends a server group of a list, like Clouddriver's ServerGroupViewModel.
// The member application is missing as it is there: Clouddriver parses it from the name, in
// which the kind and a space stand first.
func (e *encoder) serverGroupSummary(g *infrastructure.ServerGroup) {
	e.object(func() {
		e.fullName("name", g.Object)
		e.text("account", string(g.Account))
		e.text("region", g.Namespace)
		e.monikerText("cluster", &g.Moniker, vedette.ClusterPart)
		e.raw("type", `"kubernetes"`)
		e.raw("cloudProvider", `"kubernetes"`)
		e.boolean("isDisabled", g.Disabled)
		e.moniker(g.Moniker)
		e.createdTime(g.Object)
		e.serverGroupCommon(g)
		if len(g.Labels) > 0 {
			e.textMap("labels", g.Labels)
		}
		e.name("instances")
		e.array(func() {
			for _, i := range g.Instances {
				e.instanceSummary(i)
			}
		})
	})
}

// serverGroupDetail appends a server group like Clouddriver's KubernetesServerGroup.
func (e *encoder) serverGroupDetail(g *infrastructure.ServerGroup) {
	e.object(func() { e.serverGroupMembers(g) })
}

// expandedServerGroup appends a server group of a list with expand=true: the detail with the
// names of its cluster.
func (e *encoder) expandedServerGroup(g *infrastructure.ServerGroup) {
	e.object(func() {
		e.serverGroupMembers(g)
		e.text("accountName", string(g.Account))
		e.text("cluster", g.Moniker.Cluster)
		e.text("application", g.Moniker.App)
	})
}

func (e *encoder) serverGroupMembers(g *infrastructure.ServerGroup) {
	e.resource(g.Object)
	e.raw("type", `"kubernetes"`)
	e.boolean("disabled", g.Disabled)
	e.serverGroupCommon(g)
	e.raw("launchConfig", "{}")
	e.raw("zones", "[]")
	e.name("instances")
	e.array(func() {
		for _, i := range g.Instances {
			e.instanceDetail(i)
		}
	})
}

// serverGroupCommon appends what summary and detail have in common.
func (e *encoder) serverGroupCommon(g *infrastructure.ServerGroup) {
	e.buildInfo(g)
	e.name("capacity")
	e.object(func() {
		e.number("desired", g.Replicas)
		e.boolean("pinned", false)
	})
	e.instanceCounts(g.Counts)
	e.name("loadBalancers")
	e.texts(g.LoadBalancers)
	e.raw("securityGroups", "[]")
	e.name("serverGroupManagers")
	e.array(func() {
		if g.Manager != "" {
			e.object(func() {
				e.text("account", string(g.Account))
				e.text("location", g.Namespace)
				e.text("name", g.Manager)
			})
		}
	})
}

func (e *encoder) buildInfo(g *infrastructure.ServerGroup) {
	e.name("buildInfo")
	e.object(func() {
		e.name("images")
		e.texts(g.Images)
	})
}

func (e *encoder) instanceCounts(c infrastructure.InstanceCounts) {
	e.name("instanceCounts")
	e.object(func() {
		e.number("total", int64(c.Total))
		e.number("up", int64(c.Up))
		e.number("down", int64(c.Down))
		e.number("unknown", int64(c.Unknown))
		e.number("outOfService", 0)
		e.number("starting", 0)
	})
}

// manager appends a Deployment like Clouddriver's KubernetesServerGroupManager.
func (e *encoder) manager(m *infrastructure.Manager) {
	e.object(func() {
		e.resource(m.Object)
		e.name("serverGroups")
		e.array(func() {
			for _, g := range m.ServerGroups {
				e.object(func() {
					e.fullName("name", g)
					e.text("account", string(g.Account))
					e.text("namespace", g.Namespace)
					e.text("region", g.Namespace)
					e.moniker(g.Moniker)
				})
			}
		})
	})
}
