package exactjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// costs are the bytes of memory that values of a document take, at most, when it is decoded into one
// type. The figures are those of Go's allocator and maps on 64 bits; TestSizeIsAnUpperBound compares
// them with what is allocated.
type costs struct {
	object  int64 // without its members
	element int64 // of an array
	slot    int64 // of a map

	untagged string // a field whose name in JSON is not given, such as "task.Task.ID"; empty if there is none
}

const (
	wordBytes      = 8
	stringBytes    = 2 * wordBytes // a header; as large as an interface
	mapBytes       = 6 * wordBytes
	sliceBytes     = 3 * wordBytes
	groupSlots     = 8 // that the first member of a map allocates
	maxInlineBytes = 128
)

// value returns the cost of a value itself, without its members and elements. The length is that of
// its JSON.
func (c costs) value(kind jsontext.Kind, length int) int64 {
	switch kind {
	case '{':
		return c.object
	case '[':
		return sliceBytes
	case '"', '0':
		return stringBytes + roundUp(int64(length), 2*wordBytes)
	}
	return 0
}

// member returns the cost of the nth member of a map, without its value. Maps allocate slots in
// groups and double in size; on average half of the slots are free afterwards.
func (c costs) member(n int64) int64 {
	switch {
	case n == 0:
		return roundUp(groupSlots*(c.slot+1), 4*wordBytes)
	case n < groupSlots:
		return 0
	}
	return 5 * c.slot / 2
}

var knownCosts sync.Map // of costs by reflect.Type

// costsOf returns the costs for one type. Whatever its methods do, it is assumed to hold any value.
func costsOf(t reflect.Type) costs {
	if known, ok := knownCosts.Load(t); ok {
		return known.(costs)
	}
	s := survey{seen: map[reflect.Type]bool{}}
	s.visit(t)
	c := costs{
		object:  max(mapBytes+stringBytes, s.pointee+stringBytes),
		element: 2 * max(stringBytes, s.element), // append leaves up to half of a slice free
		slot:    stringBytes + max(stringBytes, min(s.element, maxInlineBytes)),
	}
	c.untagged = s.untagged
	if s.mapped > maxInlineBytes {
		c.object = max(c.object, s.mapped) // a map holds pointers to large values
	}
	knownCosts.Store(t, c)
	return c
}

// survey finds the largest types that each value of a document can allocate.
type survey struct {
	seen                     map[reflect.Type]bool
	element, mapped, pointee int64
	untagged                 string
}

func (s *survey) visit(t reflect.Type) {
	if t == nil || s.seen[t] {
		return
	}
	s.seen[t] = true
	if decodesItself(t) {
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		s.element = max(s.element, int64(t.Elem().Size()))
		s.visit(t.Elem())
	case reflect.Array:
		s.visit(t.Elem())
	case reflect.Map:
		s.mapped = max(s.mapped, int64(t.Elem().Size()))
		s.visit(t.Elem())
	case reflect.Pointer:
		s.pointee = max(s.pointee, int64(t.Elem().Size()))
		s.visit(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			s.visitField(t, t.Field(i))
		}
	}
}

func (s *survey) visitField(parent reflect.Type, f reflect.StructField) {
	tag, isTagged := f.Tag.Lookup("json")
	switch {
	case !f.IsExported() && !f.Anonymous, tag == "-":
		return
	case !isTagged && !f.Anonymous:
		s.untagged = parent.String() + "." + f.Name
	}
	s.visit(f.Type)
}

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decodesItself reports whether a method of a type decodes it. What that builds is unknown.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Interface && (p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType))
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
