package applications

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// resource appends the members that the views of all kinds have, like Clouddriver's
// KubernetesResource.
func (e *encoder) resource(o *infrastructure.Object) {
	e.Text("account", string(o.Account))
	e.fullName("name", o)
	e.Text("namespace", o.Namespace)
	e.Text("region", o.Namespace)
	e.described(o)
}

// described appends what describes an object besides its names.
func (e *encoder) described(o *infrastructure.Object) {
	e.Text("displayName", o.Name)
	e.Text("apiVersion", strings.ToLower(o.APIVersion))
	e.Text("kind", infrastructure.KindName(o.Kind))
	e.TextMap("labels", o.Labels)
	e.moniker(o.Moniker)
	e.createdTime(o)
	e.Raw("cloudProvider", `"kubernetes"`)
}

// createdTime appends milliseconds.
func (e *encoder) createdTime(o *infrastructure.Object) {
	if o.Created != 0 {
		e.Number("createdTime", 1000*o.Created)
	}
}

// moniker appends a moniker without what is not known.
func (e *encoder) moniker(m vedette.Moniker) {
	e.Name("moniker")
	web.WriteMoniker(&e.Writer, m)
}
