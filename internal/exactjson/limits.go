package exactjson

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound what a document may become. A field that is zero has its default.
type Limits struct {
	Bytes int64 // of memory that the decoded document takes, as Size has it; 64 MiB
	Depth int   // of arrays and objects in each other; 1,000, as Jackson has it
}

// Unlimited is a number of bytes that no document exceeds. It is for documents that cost their
// reader more than their sender, or that were limited before.
const Unlimited = math.MaxInt64

const (
	defaultBytes = 64 << 20
	defaultDepth = 1000
)

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Depth == 0 {
		l.Depth = defaultDepth
	}
	return l
}

// LimitError reports a document that would become more than its Limits allow.
type LimitError struct {
	Limits Limits
	Offset int64 // up to which the document keeps to them
	deep   bool
}

// Error implements error.
func (e *LimitError) Error() string {
	if e.deep {
		return fmt.Sprintf("arrays and objects are in each other more than %d deep at byte %d: send a flatter document", e.Limits.Depth, e.Offset)
	}
	if e.Limits.Bytes == Unlimited {
		return fmt.Sprintf("the first %d bytes have more than %d names in their objects: send smaller objects", e.Offset, maxOpenNames)
	}
	return fmt.Sprintf("the first %d bytes already take the %d KiB of memory that the decoded document may take: send a smaller one",
		e.Offset, e.Limits.Bytes>>10)
}

// Size is what a document becomes.
type Size struct {
	Values int   // arrays, objects, strings, numbers, booleans and nulls
	Bytes  int64 // of memory, at most, with a copy of the document itself
}

// Measure returns the size that a document has when it was decoded into the type of v. It builds
// nothing, and stops when a limit is exceeded. The size is an upper bound for types that do not
// build more than their JSON names; a reader may reserve it before it decodes.
func Measure(data []byte, v any, limits Limits) (Size, error) {
	limits = limits.withDefaults()
	m := meter{in: newDecoder(data), costs: costsOf(pointee(v)), size: Size{Bytes: int64(len(data))}, limits: limits}
	for {
		err := m.next()
		if errors.Is(err, io.EOF) {
			return m.size, m.end(len(data))
		}
		if err != nil {
			return m.size, err
		}
	}
}

// meter adds up what the tokens of a document become.
type meter struct {
	in     *jsontext.Decoder
	costs  costs
	size   Size
	limits Limits
	names  openNames
}

// maxOpenNames bounds the names of all objects that have begun and not ended. The decoder keeps
// them, to find those that occur twice, in about 100 bytes each.
const maxOpenNames = 1 << 18

// openNames counts the names of objects that have begun and not ended.
type openNames struct {
	all       int
	perObject []int
}

func (n *openNames) count(kind jsontext.Kind, isName bool) {
	last := len(n.perObject) - 1
	switch {
	case kind == '{':
		n.perObject = append(n.perObject, 0)
	case kind == '}':
		n.all -= n.perObject[last]
		n.perObject = n.perObject[:last]
	case isName:
		n.all++
		n.perObject[last]++
	}
}

func (m *meter) next() error {
	if m.in.StackDepth() == 0 && m.size.Values > 0 {
		return m.rest()
	}
	var raw jsontext.Value
	var err error
	kind := m.in.PeekKind()
	switch kind {
	case '{', '[', '}', ']':
		_, err = m.in.ReadToken()
	default:
		raw, err = m.in.ReadValue()
	}
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return syntaxError(m.in.InputOffset(), err)
	}
	return m.add(kind, len(raw))
}

// rest returns io.EOF if nothing follows the document.
func (m *meter) rest() error {
	if _, err := m.in.ReadToken(); !errors.Is(err, io.EOF) {
		return &SyntaxError{m.in.InputOffset(), "data after the document"}
	}
	return io.EOF
}

func (m *meter) add(kind jsontext.Kind, length int) error {
	depth := m.in.StackDepth()
	if depth > m.limits.Depth {
		return &LimitError{Limits: m.limits, Offset: m.in.InputOffset(), deep: true}
	}
	if kind == '}' || kind == ']' {
		m.names.count(kind, false)
		return nil
	}
	m.size.Bytes += m.costs.value(kind, length)
	parent := depth
	if kind == '{' || kind == '[' {
		parent-- // the value itself is on the stack
	}
	container, index := m.in.StackIndex(parent)
	isName := container == '{' && index%2 == 1
	switch {
	case isName:
		m.size.Bytes += m.costs.member(index / 2)
	case container == '[':
		m.size.Bytes += m.costs.element
	}
	if !isName {
		m.size.Values++
	}
	m.names.count(kind, isName)
	if m.size.Bytes > m.limits.Bytes || m.names.all > maxOpenNames {
		return &LimitError{Limits: m.limits, Offset: m.in.InputOffset()}
	}
	return nil
}

// end returns an error if the document is empty.
func (m *meter) end(length int) error {
	if m.size.Values == 0 {
		return &SyntaxError{int64(length), "the document is empty"}
	}
	return nil
}
