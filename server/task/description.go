package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/tables"
)

// commonFields are the fields of every description. Unknown fields are ignored, because a
// stage sends its whole context.
type commonFields struct {
	Account       lenientString `json:"account"`
	Credentials   lenientString `json:"credentials"` // the older name of account
	CloudProvider lenientString `json:"cloudProvider"`
}

func (c commonFields) account() vedette.AccountName {
	if c.Account == "" {
		return vedette.AccountName(c.Credentials)
	}
	return vedette.AccountName(c.Account)
}

// targetFields are the fields of operations on one object.
type targetFields struct {
	ManifestName lenientString `json:"manifestName"` // "replicaSet web-v003"
	Location     lenientString `json:"location"`     // the namespace
}

func (t targetFields) namespace() string { return cleanNamespace(t.Location) }

// cleanNamespace returns the namespace of a location. Orca can send "_" for none.
func cleanNamespace(location lenientString) string {
	if location == "_" {
		return ""
	}
	return string(location)
}

func (t targetFields) target() (objectRef, error) {
	return newObjectRef(string(t.ManifestName), t.namespace())
}

type objectRef struct {
	kind        string // as in the request; the agent knows the cluster's kinds
	displayKind string // in Clouddriver's form
	namespace   string
	name        string
}

func newObjectRef(full, namespace string) (objectRef, error) {
	kind, name, err := manifest.SplitName(full)
	if err != nil {
		return objectRef{}, err
	}
	return objectRef{kind: kind, displayKind: displayKind(kind), namespace: namespace, name: name}, nil
}

// displayKind returns a kind in Clouddriver's form: "rs", "ReplicaSet" and "replicasets.apps"
// become "replicaSet".
func displayKind(kind string) string {
	if r, err := tables.FindResource(nil, kind); err == nil {
		return manifest.KindName(r.Kind)
	}
	return manifest.KindName(vedette.ParseKind(kind))
}

// String returns the full name, for example "replicaSet web-v003".
func (t objectRef) String() string { return t.displayKind + " " + t.name }

func (t objectRef) args() vedette.Target {
	return vedette.Target{Kind: t.kind, Namespace: t.namespace, Name: t.name}
}

// lenientString is a string that can also be a number or a boolean in JSON. Null is the empty
// string.
type lenientString string

func (t *lenientString) UnmarshalJSON(raw []byte) error {
	var s string
	switch raw[0] {
	case 'n':
		return nil
	case '{', '[':
		return errors.New("must be a string")
	case '"':
		if err := exactjson.Unmarshal(raw, &s, bodyLimits); err != nil {
			return errors.New("must be a string")
		}
	default:
		s = string(raw)
	}
	if err := textcheck.Name(s); err != nil {
		return fmt.Errorf("must not contain %w", err)
	}
	*t = lenientString(s)
	return nil
}

// lenientInt is an integer that can also be a string in JSON.
type lenientInt int64

func (w *lenientInt) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if raw[0] == '"' {
		text = strings.TrimSpace(string(bytes.Trim(raw, `"`)))
	} else if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) <= math.MaxInt32 {
		text = strconv.FormatInt(int64(f), 10) // 3.0
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return errors.New("must be a whole number")
	}
	*w = lenientInt(n)
	return nil
}

// optionalInt is an integer that can be missing. Null is missing, and so are a blank string and "null".
type optionalInt struct{ n *int64 }

func (n *optionalInt) UnmarshalJSON(raw []byte) error {
	if s := strings.TrimSpace(string(bytes.Trim(raw, `"`))); s == "null" || s == "" {
		return nil
	}
	var w lenientInt
	if err := w.UnmarshalJSON(raw); err != nil {
		return err
	}
	v := int64(w)
	n.n = &v
	return nil
}

func (n optionalInt) orZero() int64 {
	if n.n == nil {
		return 0
	}
	return *n.n
}

// stringList is a list of strings in JSON. Empty ones are dropped.
type stringList []string

func (t *stringList) UnmarshalJSON(raw []byte) error {
	var all []*lenientString
	if err := exactjson.Unmarshal(raw, &all, bodyLimits); err != nil {
		return listError(err)
	}
	for _, s := range all {
		if s == nil {
			return errors.New("must be a list of strings, without null")
		}
		if *s != "" {
			*t = append(*t, string(*s))
		}
	}
	return nil
}

// listError returns what is wrong with a list of strings.
func listError(err error) error {
	if textErr, ok := errors.AsType[*textcheck.Error](err); ok {
		return fmt.Errorf("must not contain %w", textErr)
	}
	return errors.New("must be a list of strings")
}

// parse parses a description. Errors name the invalid field, but do not quote it.
func parse[D any](raw json.RawMessage) (*D, error) {
	var members map[string]json.RawMessage
	if err := exactjson.Unmarshal(raw, &members, bodyLimits); err != nil || members == nil {
		return nil, vedette.Errorf(vedette.Invalid, "the description of the operation must be an object")
	}
	d := new(D)
	if err := exactjson.Unmarshal(raw, d, bodyLimits); err != nil {
		return nil, memberError[D](members, err)
	}
	return d, nil
}

// memberError finds the invalid field by parsing each on its own, because errors of custom
// types do not include the field.
func memberError[D any](members map[string]json.RawMessage, err error) error {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		single, _ := json.Marshal(map[string]json.RawMessage{name: members[name]}) // decoded values can be encoded
		if err := exactjson.Unmarshal(single, new(D), bodyLimits); err != nil {
			return vedette.Errorf(vedette.Invalid, "%s of the description is invalid: %s", name, describeJSONError(err))
		}
	}
	return vedette.Errorf(vedette.Invalid, "the description is invalid: %s", describeJSONError(err))
}

func describeJSONError(err error) string {
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		typeName, _, _ := strings.Cut(typeErr.Value, " ") // for a number, its value follows
		return fmt.Sprintf("it is of type %s", typeName)
	}
	if public, ok := errors.AsType[*vedette.Error](err); ok {
		return public.Message
	}
	return "it " + err.Error()
}
