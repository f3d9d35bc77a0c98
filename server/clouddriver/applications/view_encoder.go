package applications

import (
	"slices"

	"github.com/vedette-io/vedette/internal/jsonwriter"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// encoder appends what views show as JSON.
type encoder struct{ jsonwriter.Writer }

// fullName appends the full name of an object, for example "pod web-0".
func (e *encoder) fullName(name string, o *infrastructure.Object) {
	e.Name(name)
	e.B = append(e.B, '"')
	e.B = append(e.B, infrastructure.KindName(o.Kind)...)
	e.B = append(e.B, ' ')
	start := len(e.B)
	e.Quote(o.Name)
	e.B = slices.Delete(e.B, start, start+1) // the quote in the middle
}
