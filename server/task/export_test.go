package task

import "github.com/vedette-io/vedette/internal/fair"

// Memory returns what tasks have taken of their memory.
func (t *Tasks) Memory() fair.Stats { return t.budget.Stats() }
