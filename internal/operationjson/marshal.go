package operationjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/vedette-io/vedette"
)

// Marshal encodes a request. Empty fields are left out, except those that the verb
// requires: zero replicas are a value.
func Marshal(r Request) ([]byte, error) {
	if r.Args == nil {
		return nil, vedette.Errorf(vedette.Invalid, "the operation has no arguments")
	}
	spec, ok := r.Args.Verb().Spec()
	if !ok {
		return nil, vedette.Errorf(vedette.Invalid, "there is no verb %q", r.Args.Verb())
	}
	members := map[string]any{}
	e := envelope{Account: r.Account, Verb: spec.Verb, ID: r.ID, Timeout: r.Timeout, DryRun: r.DryRun}
	addFields(members, reflect.ValueOf(e), fieldsOf(reflect.TypeFor[envelope]()), nil)
	addFields(members, reflect.ValueOf(r.Args), argumentFields(spec), spec.Required)
	b, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("encode the operation: %w", err)
	}
	return b, nil
}

func addFields(members map[string]any, v reflect.Value, fields []reflect.StructField, required []string) {
	for _, f := range fields {
		name, _ := restName(f)
		value := v.FieldByIndex(f.Index)
		switch {
		case value.IsZero() && !slices.Contains(required, name):
		case isBytes(f.Type):
			members[name] = embed(value.Bytes())
		default:
			members[name] = value.Interface()
		}
	}
}

// embed returns a document as a JSON value: JSON as it is, and any other text as a
// string. A JSON string becomes a string too, because decoding removes its quotes.
func embed(document []byte) any {
	if bytes.HasPrefix(bytes.TrimSpace(document), []byte(`"`)) || !json.Valid(document) {
		return string(document)
	}
	return json.RawMessage(document)
}
