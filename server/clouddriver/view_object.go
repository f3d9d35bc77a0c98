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

// moniker appends a moniker without what is not known.
func (e *encoder) moniker(m vedette.Moniker) {
	e.name("moniker")
	e.monikerObject(m)
}

func (e *encoder) monikerObject(m vedette.Moniker) {
	e.object(func() {
		e.monikerText("app", &m, vedette.AppPart)
		e.monikerText("cluster", &m, vedette.ClusterPart)
		e.monikerText("stack", &m, vedette.StackPart)
		e.monikerText("detail", &m, vedette.DetailPart)
		if m.Sequence != nil {
			e.number("sequence", int64(*m.Sequence))
		}
	})
}

// monikerText appends a text of a moniker if it is known, even if it is empty.
func (e *encoder) monikerText(name string, m *vedette.Moniker, part vedette.MonikerParts) {
	if text, known := m.Text(part); known {
		e.text(name, text)
	}
}
