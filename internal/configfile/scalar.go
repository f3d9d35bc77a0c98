package configfile

import (
	"encoding"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// decodeScalar fills a target that takes a single value. Whatever YAML makes of a
// text, the target decides: a role may be called 007 and a password 1e3.
func (d *decoder) decodeScalar(p location, n *node, target reflect.Value) {
	if n.kind != scalarNode {
		d.reportKind(p, n, expectedKind(target))
		return
	}
	text, ok := d.expandText(p, n)
	if !ok {
		return
	}
	if err := parseScalar(text, target); err != nil {
		if _, isSensitive := target.Interface().(Sensitive); isSensitive {
			d.report.Add(n.at, p.path, "%q must be %s; what stands there is not shown, for it may hold a secret", p.path, err)
			return
		}
		d.reportText(p, n, err.Error(), text)
	}
}

// expectedError is an error that says what would have been right.
type expectedError string

func (w expectedError) Error() string { return string(w) }

// parseScalar sets target to what text means to it. Its error says what is
// expected.
func parseScalar(text string, target reflect.Value) error {
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
		return parseInt(text, target)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return expectedError(expectedKind(target))
		}
		target.SetFloat(f)
	default:
		return expectedError("of a type that can be configured")
	}
	return nil
}

// parseBool knows the words of YAML 1.1, quoted or not, in any case.
func parseBool(text string, target reflect.Value) error {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "y", "t", "1":
		target.SetBool(true)
	case "false", "no", "off", "n", "f", "0":
		target.SetBool(false)
	default:
		return expectedError(expectedKind(target))
	}
	return nil
}

// parseInt takes 300000, 300_000 and 3e+05, which is what Helm makes of it.
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

// setDefaults gives a struct and all structs in it what their tags say.
func setDefaults(target reflect.Value) {
	if target.Kind() != reflect.Struct {
		return
	}
	for _, s := range keySpecs(target.Type()) {
		f := target.FieldByIndex(s.index)
		switch {
		case s.defaultValue != "":
			setDefault(f, s.defaultValue)
		case !isLeaf(f.Type()):
			setDefaults(f)
		}
	}
}

// setDefault reads a default. One that can't be read is a mistake of ours that
// every test meets, as every Load sets all defaults.
func setDefault(f reflect.Value, text string) {
	if f.Kind() == reflect.Slice {
		for part := range strings.SplitSeq(text, ",") {
			item := reflect.New(f.Type().Elem()).Elem()
			mustBeValid(parseScalar(part, item), text)
			f.Set(reflect.Append(f, item))
		}
		return
	}
	mustBeValid(parseScalar(text, f), text)
}

func mustBeValid(err error, text string) {
	if err != nil {
		panic("configfile: the default " + text + " must be " + err.Error())
	}
}
