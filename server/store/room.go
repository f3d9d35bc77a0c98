package store

import "errors"

// room is the bytes that a page may hold. Nil is room without bound.
type room struct {
	most, used int64
	full       bool // something did not fit
}

// errFull ends a query whose next row does not fit.
var errFull = errors.New("the page is full")

func newRoom(most int64) *room {
	if most <= 0 {
		return nil
	}
	return &room{most: most}
}

// take reports whether so many bytes fit too. What comes first always does.
func (r *room) take(n int) bool {
	switch {
	case r == nil:
		return true
	case r.full || r.used > 0 && r.used+int64(n) > r.most:
		r.full = true
		return false
	}
	r.used += int64(n)
	return true
}

func (r *room) isFull() bool { return r != nil && r.full }

// A page with bodies and a bound is read in steps, or a database that streams its
// rows would send all of them though the first ones fill the page: a connection
// is read to the end of a result before it is used again.
const (
	firstStep  = 128
	stepFactor = 4
)

// step returns how many rows to read after so many steps, of so many that are
// wanted.
func (r *search) step(steps, wanted int) int {
	if !r.Bodies || r.Bytes <= 0 {
		return wanted
	}
	n := firstStep
	for range min(steps, 8) {
		n *= stepFactor
	}
	return min(n, wanted)
}
