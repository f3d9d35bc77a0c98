package applications

import (
	"slices"

	"github.com/vedette-io/vedette/server/infrastructure"
)

// instanceDetail appends an instance like Clouddriver's KubernetesInstance. Its name is the uid,
// because Deck tells instances apart by it.
func (e *encoder) instanceDetail(i infrastructure.Instance) {
	e.Object(func() {
		e.Text("account", string(i.Account))
		e.Text("name", i.UID)
		e.fullName("humanReadableName", i.Object)
		e.Text("namespace", i.Namespace)
		e.described(i.Object)
		e.Raw("providerType", `"kubernetes"`)
		e.Text("zone", i.Namespace)
		e.Text("healthState", string(i.State))
		e.Name("health")
		e.Array(func() {
			for h := range i.Health() {
				e.health(h)
			}
		})
	})
}

func (e *encoder) health(h infrastructure.Health) {
	e.Object(func() {
		e.Text("state", string(h.State))
		if h.Container == "" {
			e.Raw("source", `"Pod"`)
		} else {
			e.Text("source", "Container "+h.Container)
		}
		e.Text("type", healthType(h))
		e.Raw("platform", `"platform"`)
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
	e.Object(func() {
		e.Text("id", i.UID)
		e.fullName("name", i.Object)
		e.Text("availabilityZone", i.Namespace)
		e.Text("healthState", string(i.State))
		e.Name("health")
		e.Array(func() {
			for h := range i.Health() {
				e.Separate()
				e.B = append(e.B, `{"type":"`+healthType(h)+`","state":"`+string(h.State)+`"}`...)
			}
		})
	})
}

// loadBalancerInstance appends an instance of a load balancer. Its health is one object, the
// last one, because Clouddriver merges them.
func (e *encoder) loadBalancerInstance(i infrastructure.Instance) {
	e.Object(func() {
		e.Text("id", i.UID)
		e.fullName("name", i.Object)
		e.Text("zone", i.Namespace)
		e.Name("health")
		if all := slices.Collect(i.Health()); len(all) > 0 {
			e.health(all[len(all)-1])
		} else {
			e.B = append(e.B, "{}"...)
		}
	})
}
