package redact

import "strconv"

// maxProjectedValue is the size of the longest extracted value, in bytes. Larger values are
// left out, because a summary is for lists, not for contents.
const maxProjectedValue = 4 << 10

// extractor collects the fields of a projection while an object is walked. The text of a
// field grows with its elements. The part from its mark on belongs to the current element
// and is removed if the element is read again.
type extractor struct {
	text  [][]byte // by field
	marks []int    // by field
	stack []int    // the marks of the enclosing arrays
}

// reset prepares for a projection, which may be nil.
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

// clearBelow removes what the current element added to the fields below n, which may be
// nil.
func (e *extractor) clearBelow(n *node) {
	if n == nil {
		return
	}
	for i := n.from; i < n.to; i++ {
		e.text[i] = e.text[i][:e.marks[i]]
	}
}

// set makes text the current element of a field. If the field becomes too long, it keeps only
// enough to notice that later.
func (e *extractor) set(field int, text []byte) {
	e.clearField(field)
	e.appendText(field, text)
}

func (e *extractor) clearField(field int) { e.text[field] = e.text[field][:e.marks[field]] }

func (e *extractor) appendText(field int, text []byte) {
	free := maxProjectedValue + 1 - len(e.text[field])
	e.text[field] = append(e.text[field], text[:min(len(text), max(free, 0))]...)
}

// beginArray begins the array whose elements are at star. Star may be nil here and in the
// following functions.
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

// endElement ends an element. Fields that it lacks become null.
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

// extract sets the fields that end at n to the value from i to end. If the value was
// redacted, it uses the redacted form.
func (p *redaction) extract(n *node, i, end int, before checkpoint) {
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

// appendSummary writes the extracted fields after the body, as an object, and returns its
// length. The length is 0 if there are no fields.
func (p *redaction) appendSummary() int {
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

// wipe zeroes the texts and keeps their memory.
func (e *extractor) wipe() {
	for i := range e.text {
		Wipe(e.text[i][:cap(e.text[i])])
	}
}
