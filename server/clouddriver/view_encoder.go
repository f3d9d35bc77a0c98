package clouddriver

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/vedette-io/vedette/server/infrastructure"
)

// encoder appends JSON. An application can have thousands of instances, which encoding/json
// would visit by reflection: that takes several times as long as reading them.
type encoder struct {
	b     []byte
	limit int // of bytes, after which further objects are left out; 0 means none
}

// isFull reports whether objects were left out, or may have been.
func (e *encoder) isFull() bool { return e.limit > 0 && len(e.b) > e.limit }

// grow makes room for about n bytes, because growing in small steps copies much.
func (e *encoder) grow(n int) {
	if e.limit > 0 {
		n = min(n, e.limit)
	}
	e.b = slices.Grow(e.b, n)
}

// object appends an object whose members are appended by do.
func (e *encoder) object(do func()) {
	if e.isFull() {
		return
	}
	e.separate()
	e.b = append(e.b, '{')
	do()
	e.b = append(e.b, '}')
}

// array appends an array whose elements are appended by do.
func (e *encoder) array(do func()) {
	e.separate()
	e.b = append(e.b, '[')
	do()
	e.b = append(e.b, ']')
}

// separate appends a comma if a value stands before.
func (e *encoder) separate() {
	if n := len(e.b); n > 0 {
		switch e.b[n-1] {
		case '{', '[', ':', ',':
		default:
			e.b = append(e.b, ',')
		}
	}
}

// name appends the name of a member, which must need no escaping.
func (e *encoder) name(name string) {
	e.separate()
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

// member appends the name of a member that is data, for example of an account.
func (e *encoder) member(name string) {
	e.textElement(name)
	e.b = append(e.b, ':')
}

func (e *encoder) textElement(text string) {
	e.separate()
	e.quote(text)
}

// quote appends a string. Invalid UTF-8 is replaced, and the error says only that.
func (e *encoder) quote(text string) { e.b, _ = jsontext.AppendQuote(e.b, text) }

func (e *encoder) text(name, text string) {
	e.name(name)
	e.quote(text)
}

// fullName appends the full name of an object, for example "pod web-0".
func (e *encoder) fullName(name string, o *infrastructure.Object) {
	e.name(name)
	e.b = append(e.b, '"')
	e.b = append(e.b, infrastructure.KindName(o.Kind)...)
	e.b = append(e.b, ' ')
	start := len(e.b)
	e.quote(o.Name)
	e.b = slices.Delete(e.b, start, start+1) // the quote in the middle
}

func (e *encoder) number(name string, n int64) {
	e.name(name)
	e.b = strconv.AppendInt(e.b, n, 10)
}

func (e *encoder) boolean(name string, v bool) {
	e.name(name)
	e.b = strconv.AppendBool(e.b, v)
}

// texts appends an array of strings.
func (e *encoder) texts(list []string) {
	e.array(func() {
		for _, text := range list {
			e.textElement(text)
		}
	})
}

// textMap appends a map, sorted, so that equal maps have equal bytes.
func (e *encoder) textMap(name string, m map[string]string) {
	e.name(name)
	e.object(func() {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			e.member(key)
			e.quote(m[key])
		}
	})
}

// raw appends a member with a value in JSON.
func (e *encoder) raw(name, json string) {
	e.name(name)
	e.b = append(e.b, json...)
}
