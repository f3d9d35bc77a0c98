package clouddriver

import (
	"github.com/vedette-io/vedette/server/infrastructure"
)

// loadBalancer appends a Service or an Ingress like Clouddriver's KubernetesLoadBalancer. A server
// group that gets traffic is never disabled.
func (e *encoder) loadBalancer(b *infrastructure.LoadBalancer) {
	e.object(func() {
		e.resource(b.Object)
		e.raw("type", `"kubernetes"`)
		e.name("serverGroups")
		e.array(func() {
			for _, g := range b.ServerGroups {
				e.loadBalancerServerGroup(g)
			}
		})
	})
}

func (e *encoder) loadBalancerServerGroup(g *infrastructure.ServerGroup) {
	e.object(func() {
		e.fullName("name", g.Object)
		e.text("account", string(g.Account))
		e.text("region", g.Namespace)
		e.boolean("isDisabled", g.Disabled)
		e.raw("cloudProvider", `"kubernetes"`)
		e.raw("detachedInstances", "[]")
		e.name("instances")
		e.array(func() {
			for _, i := range g.Instances {
				e.loadBalancerInstance(i)
			}
		})
	})
}

// cluster appends a cluster like Clouddriver's KubernetesCluster. Without details, its lists are
// empty.
func (e *encoder) cluster(c *infrastructure.Cluster, details bool) {
	e.object(func() {
		e.text("name", c.Name)
		e.clusterMoniker(c)
		e.raw("type", `"kubernetes"`)
		e.text("accountName", string(c.Account))
		e.text("application", c.Application)
		e.name("serverGroups")
		e.array(func() {
			for _, g := range c.ServerGroups {
				if details {
					e.serverGroupDetail(g)
				}
			}
		})
		e.name("loadBalancers")
		e.array(func() {
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
	e.name("moniker")
	e.object(func() {
		e.text("app", c.Application)
		e.text("cluster", c.Name)
	})
}

// clusterSummary appends a cluster of an account's list, like Clouddriver's ClusterViewModel.
func (e *encoder) clusterSummary(c *infrastructure.Cluster) {
	e.object(func() {
		e.text("name", c.Name)
		e.text("account", string(c.Account))
		e.clusterMoniker(c)
		e.name("loadBalancers")
		e.array(func() {
			for _, b := range c.LoadBalancers() {
				e.textElement(infrastructure.FullName(b.Object))
			}
		})
		e.name("serverGroups")
		e.array(func() {
			for _, g := range c.ServerGroups {
				e.textElement(infrastructure.FullName(g.Object))
			}
		})
	})
}
