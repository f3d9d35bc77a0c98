package clouddriver

import (
	"slices"

	"github.com/vedette-io/vedette/server/infrastructure"
)

// instanceDetail appends an instance like Clouddriver's KubernetesInstance. Its name is the uid,
// because Deck tells instances apart by it.
func (e *encoder) instanceDetail(i infrastructure.Instance) {
	e.object(func() {
		e.text("account", string(i.Account))
		e.text("name", i.UID)
		e.fullName("humanReadableName", i.Object)
		e.text("namespace", i.Namespace)
		e.described(i.Object)
		e.raw("providerType", `"kubernetes"`)
		e.text("zone", i.Namespace)
		e.text("healthState", string(i.State))
		e.name("health")
		e.array(func() {
			for h := range i.Health() {
				e.health(h)
			}
		})
	})
}

func (e *encoder) health(h infrastructure.Health) {
	e.object(func() {
		e.text("state", string(h.State))
		if h.Container == "" {
			e.raw("source", `"Pod"`)
		} else {
			e.text("source", "Container "+h.Container)
		}
		e.text("type", healthType(h))
		e.raw("platform", `"platform"`)
	})
}

func healthType(h infrastructure.Health) string {
	if h.Container == "" {
		return "kubernetes/pod"
	}
	return "kubernetes/container"
}

// instanceSummary appends an instance of a summary of a server group.
func (e *encoder) instanceSummary(i infrastructure.Instance) {
	e.object(func() {
		e.text("id", i.UID)
		e.fullName("name", i.Object)
		e.text("availabilityZone", i.Namespace)
		e.text("healthState", string(i.State))
		e.name("health")
		e.array(func() {
			for h := range i.Health() {
				e.separate()
				e.b = append(e.b, `{"type":"`+healthType(h)+`","state":"`+string(h.State)+`"}`...)
			}
		})
	})
}

// loadBalancerInstance appends an instance of a load balancer. Its health is one object, the
// last one, because Clouddriver merges them.
func (e *encoder) loadBalancerInstance(i infrastructure.Instance) {
	e.object(func() {
		e.text("id", i.UID)
		e.fullName("name", i.Object)
		e.text("zone", i.Namespace)
		e.name("health")
		if all := slices.Collect(i.Health()); len(all) > 0 {
			e.health(all[len(all)-1])
		} else {
			e.b = append(e.b, "{}"...)
		}
	})
}
