package store

import "errors"

// byteBudget is the bytes that a page may hold. Nil is room without bound.
type byteBudget struct {
	limit, used int64
	exhausted   bool // something did not fit
}

// errBudgetExhausted ends a query whose next row does not fit.
var errBudgetExhausted = errors.New("the page is full")

func newByteBudget(limit int64) *byteBudget {
	if limit <= 0 {
		return nil
	}
	return &byteBudget{limit: limit}
}

// take reports whether so many bytes fit too. What comes first always does.
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

// A page with bodies and a bound is read in steps, or a database that streams its
// rows would send all of them though the first ones fill the page: a connection
// is read to the end of a result before it is used again.
const (
	firstStep  = 128
	stepFactor = 4
)

// rowsInStep returns how many rows to read after so many steps, of so many that are
// wanted.
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
