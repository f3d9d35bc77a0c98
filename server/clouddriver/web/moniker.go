package web

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/jsonwriter"
)

// WriteMoniker appends a moniker without what is not known.
func WriteMoniker(w *jsonwriter.Writer, m vedette.Moniker) {
	w.Object(func() {
		WriteMonikerText(w, "app", &m, vedette.AppPart)
		WriteMonikerText(w, "cluster", &m, vedette.ClusterPart)
		WriteMonikerText(w, "stack", &m, vedette.StackPart)
		WriteMonikerText(w, "detail", &m, vedette.DetailPart)
		if m.Sequence != nil {
			w.Number("sequence", int64(*m.Sequence))
		}
	})
}

// WriteMonikerText appends a member with a text of a moniker if it is known, even if it is empty.
func WriteMonikerText(w *jsonwriter.Writer, name string, m *vedette.Moniker, part vedette.MonikerParts) {
	if text, known := m.Text(part); known {
		w.Text(name, text)
	}
}
