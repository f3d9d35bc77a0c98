package configfile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// KeyValue is one setting as it counts, and where it comes from. A secret's
// value is masked.
type KeyValue struct {
	Key   string
	Value string
	From  string // "agent.yml:7:3", "environment variable X" or "default"
}

// String returns "server.port = 7002 (default)".
func (kv KeyValue) String() string { return fmt.Sprintf("%s = %s (%s)", kv.Key, kv.Value, kv.From) }

// Effective lists all settings of a struct that Load filled, in the order of its
// fields, but for unused ones that nobody set.
func Effective(config any, r *Report) []KeyValue {
	e := &lister{report: r}
	e.structure(place{}, reflect.Indirect(reflect.ValueOf(config)))
	return e.all
}

type lister struct {
	report *Report
	all    []KeyValue
}

func (e *lister) structure(p place, v reflect.Value) {
	for _, s := range specsOf(v.Type()) {
		e.value(p.key(s), v.FieldByIndex(s.index))
	}
}

func (e *lister) value(p place, v reflect.Value) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Pointer || isLeaf(v.Type()) && v.Kind() != reflect.Map:
		e.leaf(p, show(v))
	case v.Kind() == reflect.Struct:
		e.structure(p, v)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			e.value(p.item(i), v.Index(i))
		}
	case v.Kind() == reflect.Map:
		e.entries(p, v)
	}
}

func (e *lister) entries(p place, v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		e.value(p.named(key.String()), v.MapIndex(key))
	}
}

func (e *lister) leaf(p place, value string) {
	if p.unused && !e.report.IsSet(p.path) {
		return
	}
	e.all = append(e.all, KeyValue{Key: p.path, Value: value, From: e.report.At(p.path).String()})
}

// show prints a leaf. Types with secrets mask themselves when printed.
func show(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return ""
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = show(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if v.CanAddr() {
		if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
			return s.String()
		}
	}
	return fmt.Sprint(v.Interface())
}
