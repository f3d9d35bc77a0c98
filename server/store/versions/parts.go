package versions

// partBits is how many bits of the id of a kind are left to its database.
const partBits = 32

// NewPart returns counters for one of several databases, whose parts use it as if there were no other. What it is told of, it
// tells v as well. The ids of kinds are those of the database here, and have its number in v, which is not 0. Call it before
// anything is published.
func (v *Versions) NewPart(number int) *Versions {
	part := New(v.settleTime)
	part.parent = v
	part.part = int64(number)
	part.AccountLog = v.AccountLog
	v.parts = append(v.parts, part)
	return part
}

// forParent returns an effect with ids of kinds as the parent has them.
func (v *Versions) forParent(e *Effect) *Effect {
	if len(e.Changed) == 0 {
		return e
	}
	told := *e
	told.Changed = make([]ChangedObject, len(e.Changed))
	for i, c := range e.Changed {
		c.KindID |= v.part << partBits
		told.Changed[i] = c
	}
	return &told
}

// Part returns the number of the database of an id of a kind, and the id there. The number is 0 for the first, which has no part.
func Part(kindID int64) (number int, id int64) {
	return int(kindID >> partBits), kindID & (1<<partBits - 1)
}

// OfPart returns a message with the ids of kinds of a database, without the objects of others, and whether it may concern the database.
func (m Message) OfPart(number int) (Message, bool) {
	if len(m.Changed) == 0 {
		return m, true
	}
	var changed []ChangedObject
	for _, c := range m.Changed {
		if of, id := Part(c.KindID); of == number {
			c.KindID = id
			changed = append(changed, c)
		}
	}
	m.Changed = changed
	return m, len(changed) > 0
}
