package operationjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// bodyLimits are those of a body that the server has measured: package decodelimit reserves as much.
var bodyLimits = exactjson.Limits{Bytes: 96 << 20}

// Unmarshal decodes a request. Its errors are of the kind vedette.Invalid and repeat no
// values, because these may be a Secret's. A field that the verb does not take is
// rejected: ignoring a misspelled field would execute another operation than the
// caller meant.
func Unmarshal(raw []byte) (Request, error) {
	var members map[string]json.RawMessage
	if err := exactjson.Unmarshal(raw, &members, bodyLimits); err != nil || members == nil {
		return Request{}, vedette.Errorf(vedette.Invalid,
			`the operation must be a JSON object, for example {"account": "prod", "verb": "get", "kind": "deployment", "name": "web"}%s`,
			syntaxErrorOffset(err))
	}
	spec, err := lookupVerb(members["verb"])
	if err != nil {
		return Request{}, err
	}
	if err := checkFields(members, spec); err != nil {
		return Request{}, err
	}
	var e envelope
	if err := decodeFields(reflect.ValueOf(&e).Elem(), fieldsOf(reflect.TypeFor[envelope]()), members); err != nil {
		return Request{}, err
	}
	args := reflect.New(reflect.TypeOf(spec.Args)).Elem()
	if err := decodeFields(args, argumentFields(spec), members); err != nil {
		return Request{}, err
	}
	return Request{Account: e.Account, ID: e.ID, Timeout: e.Timeout, DryRun: e.DryRun, Args: args.Interface().(vedette.Args)}, nil
}

// syntaxErrorOffset returns where the JSON is broken, without repeating it.
func syntaxErrorOffset(err error) string {
	if syntax, ok := errors.AsType[*exactjson.SyntaxError](err); ok {
		return fmt.Sprintf(": it is broken at byte %d: %s", syntax.Offset, syntax.Reason)
	}
	return ""
}

func lookupVerb(raw json.RawMessage) (vedette.VerbSpec, error) {
	var verb vedette.Verb
	if err := exactjson.Unmarshal(raw, &verb, bodyLimits); err != nil {
		return vedette.VerbSpec{}, vedette.Errorf(vedette.Invalid, "the operation has no verb: set the field verb to one of %s", join(Verbs()))
	}
	spec, ok := verb.Spec()
	switch {
	case ok && spec.Streams:
		return spec, vedette.Errorf(vedette.Invalid, "the verb %s is not available here: use GET /vedette/v1/%s", verb, verb)
	case !ok:
		hint := nearest.Hint(string(verb), Verbs())
		if hint == "" {
			hint = ": the verbs are " + join(Verbs())
		}
		return spec, vedette.Errorf(vedette.Invalid, "there is no verb %.100q%s", verb, hint)
	}
	return spec, nil
}

func checkFields(members map[string]json.RawMessage, spec vedette.VerbSpec) error {
	allowed := Fields(spec)
	for _, field := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(allowed, field) {
			continue
		}
		hint := nearest.Hint(field, allowed)
		if hint == "" {
			hint = ": it takes " + join(allowed)
		}
		return vedette.Errorf(vedette.Invalid, "the verb %s takes no %.100q%s", spec.Verb, field, hint)
	}
	for _, field := range append([]string{"account"}, spec.Required...) {
		if value := string(members[field]); value == "" || value == `""` || value == "null" {
			return vedette.Errorf(vedette.Invalid, "the verb %s needs the field %s", spec.Verb, field)
		}
	}
	return nil
}

func decodeFields(v reflect.Value, fields []reflect.StructField, members map[string]json.RawMessage) error {
	for _, f := range fields {
		name, _ := restName(f)
		raw, ok := members[name]
		if !ok {
			continue
		}
		value := v.FieldByIndex(f.Index)
		if err := decodeField(value, raw); err != nil {
			return vedette.Errorf(vedette.Invalid, "the field %s must be %s", name, describe(err, f.Type))
		}
		if err := checkText(value); err != nil {
			return vedette.Errorf(vedette.Invalid, "the field %s must not contain %w", name, err)
		}
	}
	return nil
}

func decodeField(value reflect.Value, raw json.RawMessage) error {
	if !isBytes(value.Type()) {
		return exactjson.Unmarshal(raw, value.Addr().Interface(), bodyLimits)
	}
	var text string
	if raw[0] == '"' && exactjson.Unmarshal(raw, &text, bodyLimits) == nil {
		raw = json.RawMessage(text)
	}
	value.SetBytes(raw)
	return nil
}

// describe returns which type a field must have. For an element of a list, the error
// names the element's type.
func describe(err error, field reflect.Type) string {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field = mismatch.Type
	}
	switch field.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of texts"
	}
	return "a whole number"
}

// checkText rejects control characters, which JSON can escape, in names and selectors.
// Documents may contain them.
func checkText(v reflect.Value) error {
	switch {
	case v.Kind() == reflect.String:
		return textcheck.Name(v.String())
	case v.Kind() == reflect.Slice && !isBytes(v.Type()):
		for i := range v.Len() {
			if err := checkText(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
