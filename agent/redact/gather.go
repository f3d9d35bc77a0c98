package redact

import "strconv"

// maxLifted is the size of the longest value that is lifted, in bytes. What is
// larger is left out: a summary is for lists, not for contents.
const maxLifted = 4 << 10

// gather holds the fields of a plan while an object is walked. The text of a
// field grows as its elements come along; what stands from its mark on belongs
// to the element at hand and is taken back when the element is read again.
type gather struct {
	text  [][]byte // by field
	marks []int    // by field
	stack []int    // the marks of the arrays around
}

// begin makes room for a plan, which may be nil.
func (g *gather) begin(p *plan) {
	n := 0
	if p != nil {
		n = len(p.names)
	}
	for len(g.text) < n {
		g.text = append(g.text, nil)
		g.marks = append(g.marks, 0)
	}
	for i := range g.text {
		g.text[i], g.marks[i] = g.text[i][:0], 0
	}
	g.stack = g.stack[:0]
}

// clear takes back what the element at hand has given to the fields below n,
// which may be nil.
func (g *gather) clear(n *node) {
	if n == nil {
		return
	}
	for i := n.from; i < n.to; i++ {
		g.text[i] = g.text[i][:g.marks[i]]
	}
}

// set makes text the element at hand of a field. Of text that makes the field
// too long only so much is taken that it still is.
func (g *gather) set(field int, text []byte) {
	g.clearField(field)
	g.push(field, text)
}

func (g *gather) clearField(field int) { g.text[field] = g.text[field][:g.marks[field]] }

func (g *gather) push(field int, text []byte) {
	room := maxLifted + 1 - len(g.text[field])
	g.text[field] = append(g.text[field], text[:min(len(text), max(room, 0))]...)
}

// open begins the array whose elements are at star, which may be nil, as for
// all that follow.
func (g *gather) open(star *node) {
	if star == nil {
		return
	}
	g.clear(star)
	for i := star.from; i < star.to; i++ {
		g.stack = append(g.stack, g.marks[i])
		g.push(i, []byte("["))
		g.marks[i] = len(g.text[i])
	}
}

// element begins an element.
func (g *gather) element(star *node, first bool) {
	if star == nil {
		return
	}
	for i := star.from; i < star.to; i++ {
		if !first {
			g.push(i, []byte(","))
		}
		g.marks[i] = len(g.text[i])
	}
}

// filled ends an element: what it lacks is null.
func (g *gather) filled(star *node) {
	if star == nil {
		return
	}
	for i := star.from; i < star.to; i++ {
		if len(g.text[i]) == g.marks[i] {
			g.push(i, []byte("null"))
		}
	}
}

func (g *gather) close(star *node) {
	if star == nil {
		return
	}
	base := len(g.stack) - (star.to - star.from)
	for i := star.from; i < star.to; i++ {
		g.push(i, []byte("]"))
		g.marks[i] = g.stack[base+i-star.from]
	}
	g.stack = g.stack[:base]
}

// capture takes the value from i to end for the fields that end at n. It takes
// it from where it was written, if anything was changed in it.
func (p *pass) capture(n *node, i, end int, before place) {
	value := p.raw[i:end]
	if p.here() != before {
		p.flush(end)
		value = p.dst[before.written+i-before.copied:]
	}
	if string(value) == "null" {
		return
	}
	for _, f := range n.values {
		p.gather.set(f, value)
	}
	if c := value[0]; c != '{' && c != '[' {
		return
	}
	for _, f := range n.counts {
		var buf [20]byte
		p.gather.set(f, strconv.AppendInt(buf[:0], int64(p.members), 10))
	}
}

// appendSummary writes the fields that were found behind the body, as an
// object, and returns its length; 0 where none was.
func (p *pass) appendSummary() int {
	if p.plan == nil {
		return 0
	}
	from := len(p.dst)
	for _, f := range p.plan.order {
		text := p.gather.text[f]
		if len(text) == 0 || len(text) > maxLifted {
			continue
		}
		p.grow(len(p.plan.names[f]) + len(text) + 2)
		if len(p.dst) == from {
			p.dst = append(p.dst, '{')
		} else {
			p.dst = append(p.dst, ',')
		}
		p.dst = append(append(p.dst, p.plan.names[f]...), text...)
	}
	if len(p.dst) == from {
		return 0
	}
	p.grow(1)
	p.dst = append(p.dst, '}')
	return len(p.dst) - from
}

// wipe forgets the texts and keeps their room.
func (g *gather) wipe() {
	for i := range g.text {
		Wipe(g.text[i][:cap(g.text[i])])
	}
}
