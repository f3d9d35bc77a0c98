package task

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/decodelimit"
)

// Request is one submitted operation.
type Request struct {
	Name        string          // for example deployManifest, or deployManifest@v2 with a version
	Description json.RawMessage // a JSON object
}

// Account returns the account that the description names; empty if it names none.
func (r Request) Account() vedette.AccountName { return r.commonFields().account() }

// Accounts returns all accounts that the description names.
func (r Request) Accounts() []vedette.AccountName {
	c := r.commonFields()
	return []vedette.AccountName{vedette.AccountName(c.Account), vedette.AccountName(c.Credentials)}
}

// Provider returns the cloud provider that the description names; empty if it names none.
func (r Request) Provider() string { return r.commonFields().provider() }

// applicationAnnotation is set on deployed objects, or by users on manifests.
const applicationAnnotation = "moniker.spinnaker.io/application"

// Applications returns the applications that the description names, which the operation may create.
func (r Request) Applications() []string {
	var d struct {
		Application string `json:"application"`
		Moniker     struct {
			App string `json:"app"`
		} `json:"moniker"`
		Manifests []struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		} `json:"manifests"`
	}
	_ = exactjson.Unmarshal(r.Description, &d, bodyLimits) // what can be read of a description that may be invalid
	names := []string{d.Application, d.Moniker.App}
	for _, m := range d.Manifests {
		names = append(names, strings.Trim(m.Metadata.Annotations[applicationAnnotation], `"`)) // Spinnaker's values are JSON
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// commonFields returns what can be read of a description that may be invalid.
func (r Request) commonFields() commonFields {
	var c commonFields
	_ = exactjson.Unmarshal(r.Description, &c, bodyLimits) // whoever executes the request reports the error
	return c
}

// ParseRequests parses an array of objects. Each member of an object is an operation with its
// description; their order is kept. Errors are vedette.Invalid and do not quote the request.
func ParseRequests(raw []byte) ([]Request, error) {
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	var elements []json.RawMessage
	if err := exactjson.Unmarshal(raw, &elements, bodyLimits); err != nil || elements == nil {
		return nil, vedette.Errorf(vedette.Invalid, "the body must be a list of operations: %s", bodyExample)
	}
	var all []Request
	for _, element := range elements {
		if element[0] != '{' {
			return nil, vedette.Errorf(vedette.Invalid, "each element of the list must be an object with an operation: %s", bodyExample)
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

// parseOperations parses the members of an object in order.
func parseOperations(object json.RawMessage) ([]Request, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, jsonSyntaxError(err)
	}
	var all []Request
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, jsonSyntaxError(err)
		}
		r := Request{Name: name.(string)} // keys of objects are strings
		if err := d.Decode(&r.Description); err != nil {
			return nil, jsonSyntaxError(err)
		}
		all = append(all, r)
	}
	return all, nil
}

// ParseRequest parses the description of an operation that the path names.
func ParseRequest(name string, raw []byte) ([]Request, error) {
	return []Request{{Name: name, Description: raw}}, checkJSON(raw)
}

// bodyLimits are those of a body that the server has measured: package decodelimit reserves as much.
var bodyLimits = exactjson.Limits{Bytes: decodelimit.MaxBytes}

func checkJSON(raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return vedette.Errorf(vedette.Invalid, "the body is empty")
	}
	return jsonSyntaxError(exactjson.Check(raw))
}

// jsonSyntaxError returns where JSON is invalid, without quoting it.
func jsonSyntaxError(err error) error {
	if err == nil {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "the body is not valid JSON: %w", err)
}
