package task

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/vedette-io/vedette"
)

// Request is one operation as it is submitted.
type Request struct {
	Name        string          // deployManifest; a version may follow, "deployManifest@v2"
	Description json.RawMessage // a JSON object
}

// ParseRequests reads an array of objects, each of whose members is an operation
// and its description, in the order in which they are written. Errors are
// vedette.Invalid and repeat nothing that was sent.
func ParseRequests(raw []byte) ([]Request, error) {
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil || elements == nil {
		return nil, vedette.Errorf(vedette.Invalid, "the body is no list of operations: %s", bodyExample)
	}
	var all []Request
	for _, element := range elements {
		if element[0] != '{' {
			return nil, vedette.Errorf(vedette.Invalid, "an element of the list is no object that names an operation: %s", bodyExample)
		}
		members, err := parseOperations(element)
		if err != nil {
			return nil, err
		}
		all = append(all, members...)
	}
	return all, nil
}

const bodyExample = `send [{"deployManifest": {"account": "…", …}}]`

// parseOperations reads an object's members in order.
func parseOperations(object json.RawMessage) ([]Request, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil { // the brace
		return nil, jsonSyntaxError(err)
	}
	var all []Request
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, jsonSyntaxError(err)
		}
		r := Request{Name: name.(string)} // the decoder lets nothing else stand here
		if err := d.Decode(&r.Description); err != nil {
			return nil, jsonSyntaxError(err)
		}
		all = append(all, r)
	}
	return all, nil
}

// ParseRequest reads the description of an operation that the path names.
func ParseRequest(name string, raw []byte) ([]Request, error) {
	return []Request{{Name: name, Description: raw}}, checkJSON(raw)
}

func checkJSON(raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	return jsonSyntaxError(json.Unmarshal(raw, new(any)))
}

// jsonSyntaxError says where JSON is broken, without quoting it.
func jsonSyntaxError(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 {
		return vedette.Errorf(vedette.Invalid, "the body is no JSON: it is broken, or ends, at byte %d", syntax.Offset)
	}
	return vedette.Errorf(vedette.Invalid, "the body is empty")
}
