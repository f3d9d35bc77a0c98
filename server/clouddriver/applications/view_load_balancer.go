package applications

import (
	"github.com/vedette-io/vedette/server/infrastructure"
)

// loadBalancer appends a Service or an Ingress like Clouddriver's KubernetesLoadBalancer. A server
// group that gets traffic is never disabled.
func (e *encoder) loadBalancer(b *infrastructure.LoadBalancer) {
	e.Object(func() {
		e.resource(b.Object)
		e.Raw("type", `"kubernetes"`)
		e.Name("serverGroups")
		e.Array(func() {
			for _, g := range b.ServerGroups {
				e.loadBalancerServerGroup(g)
			}
		})
	})
}

func (e *encoder) loadBalancerServerGroup(g *infrastructure.ServerGroup) {
	e.Object(func() {
		e.fullName("name", g.Object)
		e.Text("account", string(g.Account))
		e.Text("region", g.Namespace)
		e.Boolean("isDisabled", g.Disabled)
		e.Raw("cloudProvider", `"kubernetes"`)
		e.Raw("detachedInstances", "[]")
		e.Name("instances")
		e.Array(func() {
			for _, i := range g.Instances {
				e.loadBalancerInstance(i)
			}
		})
	})
}

// cluster appends a cluster like Clouddriver's KubernetesCluster. Without details, its lists are
// empty.
func (e *encoder) cluster(c *infrastructure.Cluster, details bool) {
	e.Object(func() {
		e.Text("name", c.Name)
		e.clusterMoniker(c)
		e.Raw("type", `"kubernetes"`)
		e.Text("accountName", string(c.Account))
		e.Text("application", c.Application)
		e.Name("serverGroups")
		e.Array(func() {
			for _, g := range c.ServerGroups {
				if details {
					e.serverGroupDetail(g)
				}
			}
		})
		e.Name("loadBalancers")
		e.Array(func() {
			for _, b := range c.LoadBalancers() {
				if details {
					e.loadBalancer(b)
				}
			}
		})
	})
}

// clusterMoniker appends the moniker of a cluster, which has no sequence, stack and detail.
func (e *encoder) clusterMoniker(c *infrastructure.Cluster) {
	e.Name("moniker")
	e.Object(func() {
		e.Text("app", c.Application)
		e.Text("cluster", c.Name)
	})
}

// clusterSummary appends a cluster of an account's list, like Clouddriver's ClusterViewModel.
func (e *encoder) clusterSummary(c *infrastructure.Cluster) {
	e.Object(func() {
		e.Text("name", c.Name)
		e.Text("account", string(c.Account))
		e.clusterMoniker(c)
		e.Name("loadBalancers")
		e.Array(func() {
			for _, b := range c.LoadBalancers() {
				e.TextElement(infrastructure.FullName(b.Object))
			}
		})
		e.Name("serverGroups")
		e.Array(func() {
			for _, g := range c.ServerGroups {
				e.TextElement(infrastructure.FullName(g.Object))
			}
		})
	})
}
