package config

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/dispatch"
)

// History configures the history of operations.
type History struct{ dispatch.Config }

func (h History) check(c configfile.Checker) {
	if h.MaxHistory < 16<<20 {
		c.Problem("maxBytes", " must be 16MiB or more, got %d bytes", h.MaxHistory)
	}
}
