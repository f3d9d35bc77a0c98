// Package exactjson decodes JSON from outside: requests, answers of other services, what agents and
// clusters send. It differs from encoding/json in what it accepts:
//
//   - Names of members are compared byte by byte. encoding/json also takes "Account" for account,
//     so that it reads another account than Spinnaker's services, which ignore that member.
//   - A member that occurs twice is an error. encoding/json takes the last one, other programs the
//     first one, so that one of them checks what another one executes.
//   - Text that is not UTF-8 is an error. encoding/json replaces its bytes, so that two names
//     become one.
//   - A document that is deeper, or that would take more memory than its Limits allow, is an error
//     before anything of it is built. Two bytes of JSON can become 400 bytes of memory.
//
// Because names are exact, each exported field must have a json tag. In everything else it decodes as
// encoding/json does, and calls the same methods of types. Types
// with a method UnmarshalJSON are responsible for their own members: the names of these are unique,
// but the method compares them.
package exactjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Unmarshal decodes a document into v, which is a pointer. Its errors are a *SyntaxError, a
// *LimitError, a *json.UnmarshalTypeError, or what a method UnmarshalJSON returned.
func Unmarshal(data []byte, v any, limits Limits) error {
	if field := costsOf(pointee(v)).untagged; field != "" {
		// encoding/json would find "id" for a field ID; here it would stay empty without an error.
		return fmt.Errorf("decode into %T: the field %s has no json tag", v, field)
	}
	if _, err := Measure(data, v, limits); err != nil {
		return err
	}
	return typeError(jsonv2.Unmarshal(data, v, exact))
}

// exact contains MatchCaseInsensitiveNames and AllowDuplicateNames although false is what jsontext
// does by default, because DefaultOptionsV1 sets both.
var exact = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv2.MatchCaseInsensitiveNames(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(numberFrom)),
)

// numberFrom decodes a json.Number, which jsonv2 takes for a string.
func numberFrom(d *jsontext.Decoder, n *json.Number) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := d.ReadValue()
	*n = json.Number(raw)
	return err
}

// SyntaxError reports a document that is not exact JSON. Its message does not quote the document,
// which may contain a Secret.
type SyntaxError struct {
	Offset int64  // of the first byte that is wrong
	Reason string // "syntax error", "a name occurs twice in one object"
}

// Error implements error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

func syntaxError(offset int64, err error) error {
	reason := "syntax error or unexpected end"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "a name occurs twice in one object"
	case strings.Contains(err.Error(), "invalid UTF-8"), strings.Contains(err.Error(), "surrogate"):
		reason = "text that is not valid UTF-8"
	}
	return &SyntaxError{offset, reason}
}

// typeError converts an error about a type to that of encoding/json, which callers know.
func typeError(err error) error {
	var mismatch *jsonv1.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	return &json.UnmarshalTypeError{Value: mismatch.Value, Type: mismatch.Type, Offset: mismatch.Offset,
		Struct: mismatch.Struct, Field: mismatch.Field}
}

// Check checks a document that is not decoded, but passed on or read in parts.
func Check(data []byte) error {
	_, err := Measure(data, nil, Limits{Bytes: Unlimited})
	return err
}

func newDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data)) // a Buffer is read in place
}

// pointee returns the type that v points to, or nil.
func pointee(v any) reflect.Type {
	if t := reflect.TypeOf(v); t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return nil
}
