// Package jsondiff computes what differs between two JSON documents, as a JSON patch (RFC 6902).
package jsondiff

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Step is a step of a JSON patch.
type Step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// remove is a step without a value.
type remove struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

// maxDepth is how deep values are compared place by place. What is deeper is replaced as a whole: each array compares all that is
// below it, so arrays in arrays would be compared again and again.
const maxDepth = 64

// Diff returns the steps from one decoded document to another: objects are map[string]any, arrays []any. Each
// value that a step replaces or removes is in a test before it. So the patch tells both values, and applies only to
// what it was made from. Members are in the order of their names. Steps share memory with the documents.
//
// The steps without their values have at most limit bytes together as JSON, because a path has the names of all that it is in: a long name
// above a long list would take their product. More is how many steps follow.
func Diff(before, after any, limit int) (steps []any, more int) {
	d := differ{room: limit}
	d.value(nil, before, after)
	return d.steps, d.more
}

// Created returns the patch that creates a document.
func Created(after any) []any { return []any{Step{"add", "", after}} }

// Deleted returns the patch that deletes a document, of which only this is known.
func Deleted() []any { return []any{remove{"remove", ""}} }

type differ struct {
	steps []any
	room  int // for steps without their values
	more  int // steps that found none
}

// add adds the steps of a place, or counts them.
func (d *differ) add(path []string, steps ...any) {
	size := len(`{"op":"add","path":""}`)
	for _, name := range path {
		size += 1 + len(name)
	}
	if size *= len(steps); size > d.room || d.more > 0 {
		d.more += len(steps)
		return
	}
	d.room -= size
	text := pointer(path)
	for _, s := range steps {
		switch s := s.(type) {
		case Step:
			s.Path = text
			d.steps = append(d.steps, s)
		case remove:
			s.Path = text
			d.steps = append(d.steps, s)
		}
	}
}

func (d *differ) value(path []string, before, after any) {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok && len(path) < maxDepth {
			d.object(path, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok && len(path) < maxDepth {
			d.array(path, b, a)
			return
		}
	}
	if reflect.DeepEqual(before, after) {
		return
	}
	d.add(path, Step{Op: "test", Value: before}, Step{Op: "replace", Value: after})
}

func (d *differ) object(path []string, before, after map[string]any) {
	names := make([]string, 0, len(before))
	for name := range before {
		names = append(names, name)
	}
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b, wasThere := before[name]
		a, isThere := after[name]
		child := append(slices.Clip(path), name)
		switch {
		case wasThere && isThere:
			d.value(child, b, a)
		case wasThere:
			d.remove(child, b)
		default:
			d.add(child, Step{Op: "add", Value: a})
		}
	}
}

// array leaves out what both have at the beginning and at the end, and compares the rest place by place. So an
// element that is added or removed is one step.
func (d *differ) array(path []string, before, after []any) {
	first, shorter := 0, min(len(before), len(after))
	for first < shorter && reflect.DeepEqual(before[first], after[first]) {
		first++
	}
	last := 0
	for last < shorter-first && reflect.DeepEqual(before[len(before)-1-last], after[len(after)-1-last]) {
		last++
	}
	before, after = before[first:len(before)-last], after[first:len(after)-last]
	both := min(len(before), len(after))
	at := func(i int) []string { return append(slices.Clip(path), strconv.Itoa(first+i)) }
	for i := range both {
		d.value(at(i), before[i], after[i])
	}
	for i := len(before) - 1; i >= both; i-- { // from the end, so that indexes stay
		d.remove(at(i), before[i])
	}
	for i := both; i < len(after); i++ {
		d.add(at(i), Step{Op: "add", Value: after[i]})
	}
}

func (d *differ) remove(path []string, before any) {
	d.add(path, Step{Op: "test", Value: before}, remove{Op: "remove"})
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(escaper.Replace(name))
	}
	return b.String()
}
