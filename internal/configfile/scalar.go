package configfile

import (
	"encoding"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// decodeScalar fills a target from a single value. The target's type decides, not YAML's
// interpretation, because a role may be called 007 and a password 1e3.
func (d *decoder) decodeScalar(p location, n *node, target reflect.Value) {
	if n.kind != scalarNode {
		d.reportKind(p, n, expectedKind(target))
		return
	}
	_, isSensitive := target.Interface().(Sensitive)
	text, ok := d.expandText(p, n)
	if !ok || !isSensitive && !d.isUTF8(p, n, text) { // a password may be of any bytes
		return
	}
	d.report.addLiterals(p, text, isSensitive)
	if err := parseScalar(text, p.format, target); err != nil {
		if isSensitive || d.report.secrets.isWithin(p.path) {
			d.report.Add(n.at, p.path, "%q must be %s (the value is not shown, because it may contain a secret)", p.path, err)
			return
		}
		d.reportText(p, n, err.Error(), text)
	}
}

// expectedError is an error that describes the expected value.
type expectedError string

func (w expectedError) Error() string { return string(w) }

// parseScalar parses text into target. Its error describes what is expected.
func parseScalar(text, format string, target reflect.Value) error {
	if u, ok := target.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	text = strings.TrimSpace(text)
	switch target.Kind() {
	case reflect.String:
		target.SetString(text)
	case reflect.Bool:
		return parseBool(text, target)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return parseNumber(text, format, target)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return expectedError(expectedKind(target))
		}
		target.SetFloat(f)
	default:
		return expectedError("of a supported type")
	}
	return nil
}

// parseBool accepts the booleans of YAML 1.1 in any case, quoted or not.
func parseBool(text string, target reflect.Value) error {
	switch {
	case IsTrue(text):
		target.SetBool(true)
	case isFalse(text):
		target.SetBool(false)
	default:
		return expectedError(expectedKind(target))
	}
	return nil
}

// IsTrue reports whether a text is true as a boolean.
func IsTrue(text string) bool {
	return slices.Contains([]string{"true", "yes", "on", "y", "t", "1"}, strings.ToLower(text))
}

func isFalse(text string) bool {
	return slices.Contains([]string{"false", "no", "off", "n", "f", "0"}, strings.ToLower(text))
}

// parseNumber parses a number, a duration or a size into a whole number.
func parseNumber(text, format string, target reflect.Value) error {
	unit := durationUnits[format]
	switch {
	case format == formatBytes:
		var size Bytes
		if err := size.UnmarshalText([]byte(text)); err != nil {
			return err
		}
		return setInt(int64(size), target)
	case unit == 0 && target.Type() == durationType:
		d, err := parseDuration(text)
		if err != nil {
			return err
		}
		return setInt(int64(d), target)
	}
	if unit == 0 {
		return parseInt(text, target)
	}
	n := reflect.New(target.Type()).Elem()
	if err := parseInt(text, n); err != nil {
		return err
	}
	if n.Int() > math.MaxInt64/int64(unit) || n.Int() < math.MinInt64/int64(unit) {
		return expectedError("a smaller number")
	}
	target.SetInt(n.Int() * int64(unit))
	return nil
}

// parseInt accepts 300000, 300_000 and 3e+05. Helm writes the last form.
func parseInt(text string, target reflect.Value) error {
	text = strings.ReplaceAll(text, "_", "")
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return expectedError(expectedKind(target))
		}
		i = int64(f)
	}
	return setInt(i, target)
}

func setInt(i int64, target reflect.Value) error {
	if target.OverflowInt(i) {
		return expectedError("a smaller number")
	}
	target.SetInt(i)
	return nil
}

func expectedKind(target reflect.Value) string {
	switch target.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a single value"
}

// setDefaults sets the defaults of a struct's tags, recursively.
func setDefaults(target reflect.Value) {
	if target.Kind() != reflect.Struct {
		return
	}
	for _, s := range keySpecs(target.Type()) {
		f := target.FieldByIndex(s.index)
		switch {
		case s.defaultValue != "":
			setDefault(f, s)
		case !s.isLeaf:
			setDefaults(f)
		}
	}
}

// WithDefaults returns a configuration that Go code has made, in which the numbers and texts that are zero have
// the defaults of their tags, as if a file had been read.
func WithDefaults[C any](config C) C {
	setZeros(reflect.ValueOf(&config).Elem())
	return config
}

func setZeros(target reflect.Value) {
	for _, s := range keySpecs(target.Type()) {
		f := target.FieldByIndex(s.index)
		switch {
		case f.Kind() == reflect.Struct && !s.isLeaf:
			setZeros(f)
		case s.defaultValue != "" && (f.CanInt() || f.CanFloat() || f.Kind() == reflect.String) && f.IsZero():
			setDefault(f, s)
		}
	}
}

// setDefault sets a default. An invalid default is a bug, which every test finds because every Load
// sets all defaults.
func setDefault(f reflect.Value, s keySpec) {
	if f.Kind() == reflect.Slice {
		for part := range strings.SplitSeq(s.defaultValue, ",") {
			item := reflect.New(f.Type().Elem()).Elem()
			mustBeValid(parseScalar(part, s.format, item), s.defaultValue)
			f.Set(reflect.Append(f, item))
		}
		return
	}
	mustBeValid(parseScalar(s.defaultValue, s.format, f), s.defaultValue)
}

func mustBeValid(err error, text string) {
	if err != nil {
		panic("configfile: the default " + text + " must be " + err.Error())
	}
}
