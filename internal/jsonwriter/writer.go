// Package jsonwriter appends JSON to a buffer. Responses can have thousands of objects, which encoding/json would visit by
// reflection: that takes several times as long as reading them.
package jsonwriter

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends JSON. It writes the commas between values.
type Writer struct {
	B     []byte
	Limit int // of bytes, after which further objects are left out; 0 means none
}

// IsFull reports whether objects were left out, or may have been.
func (w *Writer) IsFull() bool { return w.Limit > 0 && len(w.B) > w.Limit }

// Grow makes room for about n bytes, because growing in small steps copies much.
func (w *Writer) Grow(n int) {
	if w.Limit > 0 {
		n = min(n, w.Limit)
	}
	w.B = slices.Grow(w.B, n)
}

// Object appends an object whose members are appended by do.
func (w *Writer) Object(do func()) {
	if w.IsFull() {
		return
	}
	w.Separate()
	w.B = append(w.B, '{')
	do()
	w.B = append(w.B, '}')
}

// Array appends an array whose elements are appended by do.
func (w *Writer) Array(do func()) {
	w.Separate()
	w.B = append(w.B, '[')
	do()
	w.B = append(w.B, ']')
}

// Separate appends a comma if a value precedes.
func (w *Writer) Separate() {
	if n := len(w.B); n > 0 {
		switch w.B[n-1] {
		case '{', '[', ':', ',':
		default:
			w.B = append(w.B, ',')
		}
	}
}

// Name appends the name of a member, which must need no escaping.
func (w *Writer) Name(name string) {
	w.Separate()
	w.B = append(w.B, '"')
	w.B = append(w.B, name...)
	w.B = append(w.B, '"', ':')
}

// Member appends the name of a member that is data, for example of an account.
func (w *Writer) Member(name string) {
	w.TextElement(name)
	w.B = append(w.B, ':')
}

// TextElement appends a string to an array.
func (w *Writer) TextElement(text string) {
	w.Separate()
	w.Quote(text)
}

// Quote appends a string as a value. Invalid UTF-8 is replaced, and the error of AppendQuote says only that.
func (w *Writer) Quote(text string) { w.B, _ = jsontext.AppendQuote(w.B, text) }

// Text appends a member with a string.
func (w *Writer) Text(name, text string) {
	w.Name(name)
	w.Quote(text)
}

// Number appends a member with a number.
func (w *Writer) Number(name string, n int64) {
	w.Name(name)
	w.B = strconv.AppendInt(w.B, n, 10)
}

// Boolean appends a member with a boolean.
func (w *Writer) Boolean(name string, v bool) {
	w.Name(name)
	w.B = strconv.AppendBool(w.B, v)
}

// Texts appends an array of strings.
func (w *Writer) Texts(list []string) {
	w.Array(func() {
		for _, text := range list {
			w.TextElement(text)
		}
	})
}

// TextMap appends a member with a map, sorted, so that equal maps have equal bytes.
func (w *Writer) TextMap(name string, m map[string]string) {
	w.Name(name)
	w.Object(func() {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			w.Member(key)
			w.Quote(m[key])
		}
	})
}

// Raw appends a member with a value in JSON.
func (w *Writer) Raw(name, json string) {
	w.Name(name)
	w.B = append(w.B, json...)
}
