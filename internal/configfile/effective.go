package configfile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	masking "github.com/vedette-io/vedette/internal/mask"
)

// KeyValue is the effective value of one setting, and where it comes from. The
// values of secrets are masked.
type KeyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"` // "agent.yml:7:3", "environment variable X" or FromDefault
}

// FromDefault is where a value comes from that nothing sets.
const FromDefault = "default"

// String returns "server.port = 7002 (default)".
func (kv KeyValue) String() string {
	return fmt.Sprintf("%s = %s (%s)", printable(kv.Key), printable(kv.Value), kv.From)
}

// Effective lists the settings of a struct that Load filled, in the order of its
// fields. Keys without an effect are listed only if they are set.
func Effective(config any, r *Report) []KeyValue {
	e := &settingLister{report: r}
	e.listConfig(config)
	return e.all
}

type settingLister struct {
	report   *Report
	reasons  Reasons
	all      []KeyValue
	changed  map[string]bool // keys of all whose values are not their defaults
	inactive []Inactive
}

func (e *settingLister) listStruct(p location, v reflect.Value) {
	defaults := reflect.New(v.Type()).Elem()
	setDefaults(defaults)
	for _, s := range keySpecs(v.Type()) {
		location, field := p.key(s), v.FieldByIndex(s.index)
		isSet := e.report.IsSet(location.path) || field.Kind() == reflect.Map // the report has the entries of a map
		if isSet && !isSame(field, defaults.FieldByIndex(s.index)) {
			e.addChanged(location)
		}
		e.listValue(location, field)
	}
}

// isSame reports whether two values of a leaf mean the same. An empty list means
// the same as none.
func isSame(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func (e *settingLister) addChanged(p location) {
	if p.isInactive() {
		e.addInactive(p)
		return
	}
	if e.changed == nil {
		e.changed = map[string]bool{}
	}
	e.changed[p.path] = true
}

func (e *settingLister) listValue(p location, v reflect.Value) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Pointer || isLeaf(v.Type()) && v.Kind() != reflect.Map:
		e.addSetting(p, p.formatValue(v))
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
	if p.isInactive() && !e.report.IsSet(p.path) {
		return
	}
	if e.report.secrets.isWithin(p.path) {
		value = mask
	}
	e.all = append(e.all, KeyValue{Key: p.path, Value: value, From: e.report.PositionOf(p.path).String()})
}

// formatValue formats a value. Types with secrets mask themselves.
func (l limits) formatValue(v reflect.Value) string {
	unit := durationUnits[l.format]
	switch {
	case v.Kind() == reflect.Pointer:
		return ""
	case v.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = l.formatValue(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case unit != 0:
		return strconv.FormatInt(v.Int()/int64(unit), 10)
	case l.format == formatBytes:
		return Bytes(v.Int()).String()
	}
	if v.CanAddr() {
		if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
			return s.String()
		}
	}
	return masking.URLs(fmt.Sprint(v.Interface()))
}
