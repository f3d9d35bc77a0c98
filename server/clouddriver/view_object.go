package clouddriver

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// resource appends the members that the views of all kinds have, like Clouddriver's
// KubernetesResource.
func (e *encoder) resource(o *infrastructure.Object) {
	e.text("account", string(o.Account))
	e.fullName("name", o)
	e.text("namespace", o.Namespace)
	e.text("region", o.Namespace)
	e.described(o)
}

// described appends what describes an object besides its names.
func (e *encoder) described(o *infrastructure.Object) {
	e.text("displayName", o.Name)
	e.text("apiVersion", strings.ToLower(o.APIVersion))
	e.text("kind", infrastructure.KindName(o.Kind))
	e.textMap("labels", o.Labels)
	e.moniker(o.Moniker)
	e.createdTime(o)
	e.raw("cloudProvider", `"kubernetes"`)
}

// createdTime appends milliseconds.
func (e *encoder) createdTime(o *infrastructure.Object) {
	if o.Created != 0 {
		e.number("createdTime", 1000*o.Created)
	}
}

// moniker appends a moniker without the parts that are unknown.
func (e *encoder) moniker(m vedette.Moniker) {
	e.name("moniker")
	e.object(func() {
		e.optional("app", m.App)
		e.optional("cluster", m.Cluster)
		e.optional("stack", m.Stack)
		e.optional("detail", m.Detail)
		if m.Sequence != nil {
			e.number("sequence", int64(*m.Sequence))
		}
	})
}
