package api

import (
	"encoding/json"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/jsonwriter"
	"github.com/vedette-io/vedette/server/store/read"
)

// appendObject appends an object in the API's JSON. Lists contain thousands of objects, and
// the summary and the manifest are JSON already. encoding/json would parse these again; this
// code takes a third of the time. The tests compare it with the schema Object.
func appendObject(b []byte, r *read.Row) []byte {
	o := objectWriter{jsonwriter.Writer{B: append(b, '{')}}
	o.Text("account", string(r.Account))
	o.Text("kind", r.Kind.String())
	o.Text("apiVersion", r.APIVersion)
	o.optionalText("namespace", r.Namespace)
	o.Text("name", r.Name)
	o.Text("uid", r.UID)
	o.Text("resourceVersion", r.ResourceVersion)
	o.time("created", creationTime(r.Created))
	if len(r.Labels) > 0 {
		o.TextMap("labels", r.Labels)
	}
	o.owner(r.Owner)
	o.moniker(r.Moniker)
	o.rawJSON("summary", r.Summary)
	o.time("storedAt", timestamp(r.Stored))
	o.rawJSON("manifest", r.Body)
	return append(o.B, '}')
}

type objectWriter struct{ jsonwriter.Writer }

func (o *objectWriter) optionalText(name, value string) {
	if value != "" {
		o.Text(name, value)
	}
}

func (o *objectWriter) time(name string, m timestamp) {
	o.Name(name)
	o.B = m.appendTo(o.B)
}

// rawJSON writes a value that is JSON already. Invalid JSON is left out, because it comes from
// an agent, and one agent must not break responses about all other accounts.
func (o *objectWriter) rawJSON(name string, value []byte) {
	if len(value) > 0 && json.Valid(value) {
		o.Name(name)
		o.B = append(o.B, value...)
	}
}

func (o *objectWriter) owner(owner vedette.Owner) {
	if owner == (vedette.Owner{}) {
		return
	}
	o.Name("owner")
	o.Object(func() {
		o.Text("kind", owner.Kind.String())
		o.Text("name", owner.Name)
		o.Text("uid", owner.UID)
	})
}

func (o *objectWriter) moniker(m vedette.Moniker) {
	o.Name("moniker")
	o.Object(func() {
		o.Text("app", m.App)
		o.Text("cluster", m.Cluster)
		o.optionalText("stack", m.Stack)
		o.optionalText("detail", m.Detail)
		if m.Sequence != nil {
			o.Number("sequence", int64(*m.Sequence))
		}
	})
}

// timestamp is a time that is encoded as RFC 3339 with milliseconds, or null if it is zero.
type timestamp time.Time

func (m timestamp) appendTo(b []byte) []byte {
	t := time.Time(m)
	if t.IsZero() {
		return append(b, "null"...)
	}
	return t.UTC().AppendFormat(b, `"2006-01-02T15:04:05.000Z07:00"`)
}

func (m timestamp) MarshalJSON() ([]byte, error) { return m.appendTo(nil), nil }

func creationTime(seconds int64) timestamp {
	if seconds == 0 {
		return timestamp{}
	}
	return timestamp(time.Unix(seconds, 0))
}
