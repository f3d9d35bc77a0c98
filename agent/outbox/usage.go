package outbox

// usage is how many bytes of a box changes use. Large changes count apart, so that one of them leaves room for
// the others.
type usage struct{ small, large int }

func (u *usage) add(c *Change)    { *u = u.plus(sizeOf(c)) }
func (u *usage) remove(c *Change) { *u = u.minus(sizeOf(c)) }

func sizeOf(c *Change) usage {
	if c.isLarge() {
		return usage{large: c.size()}
	}
	return usage{small: c.size()}
}

func (u usage) plus(v usage) usage  { return usage{u.small + v.small, u.large + v.large} }
func (u usage) minus(v usage) usage { return usage{u.small - v.small, u.large - v.large} }
func (u usage) total() int          { return u.small + u.large }
