package configfile

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// limits are what the tags of a field say about its values, and how files write them. They are in the tags because
// the tags have the default too: a setting is found in one place.
type limits struct {
	// format is "bytes" for a size, "port" for the number of a port, or one of durationUnits for a duration that
	// files write as a number. A time.Duration without a format has a unit in files.
	format string
	// minimum and maximum are written as in files; "" for none. enum are the texts that are allowed, in any case.
	minimum, maximum string
	enum             []string
}

const (
	formatBytes = "bytes"
	formatPort  = "port"
)

var (
	durationType  = reflect.TypeFor[time.Duration]()
	durationUnits = map[string]time.Duration{"nanoseconds": time.Nanosecond, "milliseconds": time.Millisecond, "seconds": time.Second}
)

func limitsOf(tag reflect.StructTag) limits {
	l := limits{format: tag.Get("format"), minimum: tag.Get("minimum"), maximum: tag.Get("maximum")}
	if enum := tag.Get("enum"); enum != "" {
		l.enum = strings.Split(enum, ",")
	}
	if l.format == formatPort {
		l.minimum, l.maximum = "0", "65535"
	}
	return l
}

// typeName returns the name of a type as a user knows it.
func (l limits) typeName(t reflect.Type) string {
	switch {
	case l.format == formatBytes:
		return "size"
	case durationUnits[l.format] != 0:
		return "integer"
	}
	return typeName(t)
}

// checkLimits reports the values outside of their limits, after everything that sets values has done so.
func (r *Report) checkLimits(p location, target reflect.Value) {
	for _, s := range keySpecs(target.Type()) {
		inner, f := p.key(s), reflect.Indirect(target.FieldByIndex(s.index))
		switch {
		case !f.IsValid():
		case s.isLeaf:
			if want := s.unmet(f); want != "" {
				r.AddAt(inner.path, "%q must %s", inner.path, want)
			}
		case f.Kind() == reflect.Struct:
			r.checkLimits(inner, f)
		case f.Kind() == reflect.Slice:
			for i := range f.Len() {
				r.checkLimits(inner.item(i), f.Index(i))
			}
		}
	}
}

// unmet returns what a value must be and is not, or "".
func (l limits) unmet(v reflect.Value) string {
	isAllowed := func(enum string) bool { return strings.EqualFold(enum, v.String()) }
	expected := ""
	switch {
	case len(l.enum) > 0 && !slices.ContainsFunc(l.enum, isAllowed):
		return "be one of " + strings.Join(l.enum, ", ") + ", got " + strconv.Quote(v.String())
	case !l.isBelow(v, l.minimum) && !l.isAbove(v, l.maximum):
		return ""
	case l.format == formatPort:
		expected = "be a port from 0 to 65535"
	case l.maximum != "":
		expected = "be from " + l.minimum + " to " + l.maximum
	case l.minimum == "0":
		expected = "not be negative"
	case l.format == formatBytes:
		expected = "be at least " + l.minimum
	default:
		expected = "be " + l.minimum + " or more"
	}
	return expected + ", got " + l.formatValue(v)
}

func (l limits) isBelow(v reflect.Value, minimum string) bool {
	return minimum != "" && number(v) < number(l.parsed(v.Type(), minimum))
}

func (l limits) isAbove(v reflect.Value, maximum string) bool {
	return maximum != "" && number(v) > number(l.parsed(v.Type(), maximum))
}

// parsed parses a limit. An invalid one is a bug, as is an invalid default.
func (l limits) parsed(t reflect.Type, text string) reflect.Value {
	limit := reflect.New(t).Elem()
	mustBeValid(parseScalar(text, l.format, limit), text)
	return limit
}

func number(v reflect.Value) float64 {
	if v.CanFloat() {
		return v.Float()
	}
	return float64(v.Int())
}
