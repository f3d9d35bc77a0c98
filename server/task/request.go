package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

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
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := begin(d, '[', "the body is no list of operations"); err != nil {
		return nil, err
	}
	var all []Request
	for d.More() {
		if err := begin(d, '{', "an element of the list is no object that names an operation"); err != nil {
			return nil, err
		}
		var err error
		if all, err = parseMembers(d, all); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil { // the list's end
		return nil, broken(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, vedette.Errorf(vedette.Invalid, "something follows the list of operations")
	}
	return all, nil
}

func parseMembers(d *json.Decoder, all []Request) ([]Request, error) {
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, broken(err)
		}
		r := Request{Name: name.(string)} // the decoder lets nothing else stand here
		if err := d.Decode(&r.Description); err != nil {
			return nil, broken(err)
		}
		all = append(all, r)
	}
	if _, err := d.Token(); err != nil { // the object's end
		return nil, broken(err)
	}
	return all, nil
}

func begin(d *json.Decoder, with json.Delim, otherwise string) error {
	token, err := d.Token()
	if err != nil {
		return broken(err)
	}
	if token != with {
		return vedette.Errorf(vedette.Invalid, `%s: send [{"deployManifest": {"account": "…", …}}]`, otherwise)
	}
	return nil
}

// ParseRequest reads the description of an operation that the path names.
func ParseRequest(name string, raw []byte) ([]Request, error) {
	if !json.Valid(raw) {
		return nil, broken(json.Unmarshal(raw, new(any)))
	}
	return []Request{{Name: name, Description: raw}}, nil
}

// broken says where JSON is broken, without quoting it.
func broken(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 {
		return vedette.Errorf(vedette.Invalid, "the body is no JSON: it is broken at byte %d", syntax.Offset)
	}
	return vedette.Errorf(vedette.Invalid, "the body is no JSON: it is empty or cut short")
}
