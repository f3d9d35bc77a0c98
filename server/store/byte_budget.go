package store

import "errors"

// byteBudget limits the bytes of a page. A nil byteBudget has no limit.
type byteBudget struct {
	limit, used int64
	exhausted   bool // take has returned false
}

// errBudgetExhausted ends a query whose next row does not fit into the page.
var errBudgetExhausted = errors.New("the page is full")

func newByteBudget(limit int64) *byteBudget {
	if limit <= 0 {
		return nil
	}
	return &byteBudget{limit: limit}
}

// take reports whether n more bytes fit. The first call always succeeds, so that a page is never
// empty.
func (b *byteBudget) take(n int) bool {
	switch {
	case b == nil:
		return true
	case b.exhausted || b.used > 0 && b.used+int64(n) > b.limit:
		b.exhausted = true
		return false
	}
	b.used += int64(n)
	return true
}

func (b *byteBudget) isExhausted() bool { return b != nil && b.exhausted }

// A page with bodies and a byte limit is read in steps of increasing size. The driver reads a
// result to its end before it uses the connection again, so a single query would transfer all rows
// even if the first ones fill the page.
const (
	firstStep  = 128
	stepFactor = 4
)

// rowsInStep returns how many of the wanted rows to read in the next step.
func (r *resolvedQuery) rowsInStep(steps, wanted int) int {
	if !r.Bodies || r.Bytes <= 0 {
		return wanted
	}
	n := firstStep
	for range min(steps, 8) {
		n *= stepFactor
	}
	return min(n, wanted)
}
