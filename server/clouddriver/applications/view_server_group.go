package applications

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// serverGroupSummary appends a server group of a list, like Clouddriver's ServerGroupViewModel.
// The member application is missing as it is there: Clouddriver parses it from the name, in
// which the kind and a space come first.
func (e *encoder) serverGroupSummary(g *infrastructure.ServerGroup) {
	e.Object(func() {
		e.fullName("name", g.Object)
		e.Text("account", string(g.Account))
		e.Text("region", g.Namespace)
		web.WriteMonikerText(&e.Writer, "cluster", &g.Moniker, vedette.ClusterPart)
		e.Raw("type", `"kubernetes"`)
		e.Raw("cloudProvider", `"kubernetes"`)
		e.Boolean("isDisabled", g.Disabled)
		e.moniker(g.Moniker)
		e.createdTime(g.Object)
		e.serverGroupCommon(g)
		if len(g.Labels) > 0 {
			e.TextMap("labels", g.Labels)
		}
		e.Name("instances")
		e.Array(func() {
			for _, i := range g.Instances {
				e.instanceSummary(i)
			}
		})
	})
}

// serverGroupDetail appends a server group like Clouddriver's KubernetesServerGroup.
func (e *encoder) serverGroupDetail(g *infrastructure.ServerGroup) {
	e.Object(func() { e.serverGroupMembers(g) })
}

// expandedServerGroup appends a server group of a list with expand=true: the detail with the
// names of its cluster.
func (e *encoder) expandedServerGroup(g *infrastructure.ServerGroup) {
	e.Object(func() {
		e.serverGroupMembers(g)
		e.Text("accountName", string(g.Account))
		e.Text("cluster", g.Moniker.Cluster)
		e.Text("application", g.Moniker.App)
	})
}

func (e *encoder) serverGroupMembers(g *infrastructure.ServerGroup) {
	e.resource(g.Object)
	e.Raw("type", `"kubernetes"`)
	e.Boolean("disabled", g.Disabled)
	e.serverGroupCommon(g)
	e.Raw("launchConfig", "{}")
	e.Raw("zones", "[]")
	e.Name("instances")
	e.Array(func() {
		for _, i := range g.Instances {
			e.instanceDetail(i)
		}
	})
}

// serverGroupCommon appends what summary and detail have in common.
func (e *encoder) serverGroupCommon(g *infrastructure.ServerGroup) {
	e.buildInfo(g)
	e.Name("capacity")
	e.Object(func() {
		e.Number("desired", g.Replicas)
		e.Boolean("pinned", false)
	})
	e.instanceCounts(g.Counts)
	e.Name("loadBalancers")
	e.Texts(g.LoadBalancers)
	e.Raw("securityGroups", "[]")
	e.Name("serverGroupManagers")
	e.Array(func() {
		if g.Manager != "" {
			e.Object(func() {
				e.Text("account", string(g.Account))
				e.Text("location", g.Namespace)
				e.Text("name", g.Manager)
			})
		}
	})
}

func (e *encoder) buildInfo(g *infrastructure.ServerGroup) {
	e.Name("buildInfo")
	e.Object(func() {
		e.Name("images")
		e.Texts(g.Images)
	})
}

func (e *encoder) instanceCounts(c infrastructure.InstanceCounts) {
	e.Name("instanceCounts")
	e.Object(func() {
		e.Number("total", int64(c.Total))
		e.Number("up", int64(c.Up))
		e.Number("down", int64(c.Down))
		e.Number("unknown", int64(c.Unknown))
		e.Number("outOfService", 0)
		e.Number("starting", 0)
	})
}

// manager appends a Deployment like Clouddriver's KubernetesServerGroupManager.
func (e *encoder) manager(m *infrastructure.Manager) {
	e.Object(func() {
		e.resource(m.Object)
		e.Name("serverGroups")
		e.Array(func() {
			for _, g := range m.ServerGroups {
				e.Object(func() {
					e.fullName("name", g)
					e.Text("account", string(g.Account))
					e.Text("namespace", g.Namespace)
					e.Text("region", g.Namespace)
					e.moniker(g.Moniker)
				})
			}
		})
	})
}
