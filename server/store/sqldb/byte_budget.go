package sqldb

import "errors"

// ByteBudget limits the bytes of a page. A nil ByteBudget has no limit.
type ByteBudget struct {
	limit, used int64
	exhausted   bool // take has returned false
}

// ErrBudgetExhausted ends a query whose next row does not fit into the page.
var ErrBudgetExhausted = errors.New("the page is full")

// NewByteBudget returns a budget of bytes; nil, which has no limit, for 0.
func NewByteBudget(limit int64) *ByteBudget {
	if limit <= 0 {
		return nil
	}
	return &ByteBudget{limit: limit}
}

// Take reports whether n more bytes fit. The first call always succeeds, so that a page is never
// empty.
func (b *ByteBudget) Take(n int) bool {
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

// IsExhausted reports whether something did not fit.
func (b *ByteBudget) IsExhausted() bool { return b != nil && b.exhausted }
