package configfile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// KeyValue is one effective setting and its origin. The value of a secret is masked.
type KeyValue struct {
	Key   string
	Value string
	From  string // "agent.yml:7:3", "environment variable X" or "default"
}

// String returns "server.port = 7002 (default)".
func (kv KeyValue) String() string { return fmt.Sprintf("%s = %s (%s)", kv.Key, kv.Value, kv.From) }

// Effective returns all settings of a struct that Load filled, in the order of its fields. It omits
// unused settings that are not set.
func Effective(config any, r *Report) []KeyValue {
	e := &settingLister{report: r}
	e.listStruct(location{}, reflect.Indirect(reflect.ValueOf(config)))
	return e.all
}

type settingLister struct {
	report *Report
	all    []KeyValue
}

func (e *settingLister) listStruct(p location, v reflect.Value) {
	for _, s := range keySpecs(v.Type()) {
		e.listValue(p.key(s), v.FieldByIndex(s.index))
	}
}

func (e *settingLister) listValue(p location, v reflect.Value) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Pointer || isLeaf(v.Type()) && v.Kind() != reflect.Map:
		e.addSetting(p, formatValue(v))
	case v.Kind() == reflect.Struct:
		e.listStruct(p, v)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			e.listValue(p.item(i), v.Index(i))
		}
	case v.Kind() == reflect.Map:
		e.listMap(p, v)
	}
}

func (e *settingLister) listMap(p location, v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		e.listValue(p.withKey(key.String()), v.MapIndex(key))
	}
}

func (e *settingLister) addSetting(p location, value string) {
	if p.unused && !e.report.IsSet(p.path) {
		return
	}
	e.all = append(e.all, KeyValue{Key: p.path, Value: value, From: e.report.PositionOf(p.path).String()})
}

// formatValue formats a value. Types with secrets mask themselves.
func formatValue(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return ""
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = formatValue(v.Index(i))
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
