package redact

import "strconv"

// maxProjectedValue is the size of the longest value that is lifted, in bytes. What is
// larger is left out: a summary is for lists, not for contents.
const maxProjectedValue = 4 << 10

// extractor holds the fields of a plan while an object is walked. The text of a
// field grows as its elements come along; what stands from its mark on belongs
// to the element at hand and is taken back when the element is read again.
type extractor struct {
	text  [][]byte // by field
	marks []int    // by field
	stack []int    // the marks of the arrays around
}

// reset makes room for a plan, which may be nil.
func (e *extractor) reset(p *projection) {
	n := 0
	if p != nil {
		n = len(p.names)
	}
	for len(e.text) < n {
		e.text = append(e.text, nil)
		e.marks = append(e.marks, 0)
	}
	for i := range e.text {
		e.text[i], e.marks[i] = e.text[i][:0], 0
	}
	e.stack = e.stack[:0]
}

// clearBelow takes back what the element at hand has given to the fields below n,
// which may be nil.
func (e *extractor) clearBelow(n *node) {
	if n == nil {
		return
	}
	for i := n.from; i < n.to; i++ {
		e.text[i] = e.text[i][:e.marks[i]]
	}
}

// set makes text the element at hand of a field. Of text that makes the field
// too long only so much is taken that it still is.
func (e *extractor) set(field int, text []byte) {
	e.clearField(field)
	e.appendText(field, text)
}

func (e *extractor) clearField(field int) { e.text[field] = e.text[field][:e.marks[field]] }

func (e *extractor) appendText(field int, text []byte) {
	free := maxProjectedValue + 1 - len(e.text[field])
	e.text[field] = append(e.text[field], text[:min(len(text), max(free, 0))]...)
}

// beginArray begins the array whose elements are at star, which may be nil, as for
// all that follow.
func (e *extractor) beginArray(star *node) {
	if star == nil {
		return
	}
	e.clearBelow(star)
	for i := star.from; i < star.to; i++ {
		e.stack = append(e.stack, e.marks[i])
		e.appendText(i, []byte("["))
		e.marks[i] = len(e.text[i])
	}
}

// beginElement begins an element.
func (e *extractor) beginElement(star *node, first bool) {
	if star == nil {
		return
	}
	for i := star.from; i < star.to; i++ {
		if !first {
			e.appendText(i, []byte(","))
		}
		e.marks[i] = len(e.text[i])
	}
}

// endElement ends an element: what it lacks is null.
func (e *extractor) endElement(star *node) {
	if star == nil {
		return
	}
	for i := star.from; i < star.to; i++ {
		if len(e.text[i]) == e.marks[i] {
			e.appendText(i, []byte("null"))
		}
	}
}

func (e *extractor) endArray(star *node) {
	if star == nil {
		return
	}
	base := len(e.stack) - (star.to - star.from)
	for i := star.from; i < star.to; i++ {
		e.appendText(i, []byte("]"))
		e.marks[i] = e.stack[base+i-star.from]
	}
	e.stack = e.stack[:base]
}

// extract takes the value from i to end for the fields that end at n. It takes
// it from where it was written, if anything was changed in it.
func (p *pass) extract(n *node, i, end int, before checkpoint) {
	value := p.raw[i:end]
	if p.checkpoint() != before {
		p.flush(end)
		value = p.dst[before.written+i-before.copied:]
	}
	if string(value) == "null" {
		return
	}
	for _, f := range n.values {
		p.extractor.set(f, value)
	}
	if c := value[0]; c != '{' && c != '[' {
		return
	}
	for _, f := range n.counts {
		var buf [20]byte
		p.extractor.set(f, strconv.AppendInt(buf[:0], int64(p.members), 10))
	}
}

// appendSummary writes the fields that were found behind the body, as an
// object, and returns its length; 0 where none was.
func (p *pass) appendSummary() int {
	if p.projection == nil {
		return 0
	}
	from := len(p.dst)
	for _, f := range p.projection.order {
		text := p.extractor.text[f]
		if len(text) == 0 || len(text) > maxProjectedValue {
			continue
		}
		p.grow(len(p.projection.names[f]) + len(text) + 2)
		if len(p.dst) == from {
			p.dst = append(p.dst, '{')
		} else {
			p.dst = append(p.dst, ',')
		}
		p.dst = append(append(p.dst, p.projection.names[f]...), text...)
	}
	if len(p.dst) == from {
		return 0
	}
	p.grow(1)
	p.dst = append(p.dst, '}')
	return len(p.dst) - from
}

// wipe forgets the texts and keeps their room.
func (e *extractor) wipe() {
	for i := range e.text {
		Wipe(e.text[i][:cap(e.text[i])])
	}
}
