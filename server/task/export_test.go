package task

import "github.com/vedette-io/vedette/internal/fair"

// Memory returns what tasks have taken of their memory.
func (t *Tasks) Memory() fair.Stats { return t.budget.Stats() }

// CopyBytes returns how much memory copies of other servers' tasks take.
func (t *Tasks) CopyBytes() int64 { return t.copyBudget.Stats().Used }
