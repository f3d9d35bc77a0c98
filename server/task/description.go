package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/views"
)

// common is what every description has. A stage sends its whole context along:
// what is not named in a description is passed over.
type common struct {
	Account       text `json:"account"`
	Credentials   text `json:"credentials"` // the older name of account
	CloudProvider text `json:"cloudProvider"`
}

func (c common) account() vedette.AccountName {
	if c.Account == "" {
		return vedette.AccountName(c.Credentials)
	}
	return vedette.AccountName(c.Account)
}

// targeted is the description of an operation on one object.
type targeted struct {
	ManifestName text `json:"manifestName"` // "replicaSet web-v003"
	Location     text `json:"location"`     // the namespace
}

func (t targeted) namespace() string { return namespaceOf(t.Location) }

// namespaceOf reads a namespace as Orca writes it: where it has none it may
// write "_".
func namespaceOf(location text) string {
	if location == "_" {
		return ""
	}
	return string(location)
}

func (t targeted) target() (target, error) { return newTarget(string(t.ManifestName), t.namespace()) }

// target is one object.
type target struct {
	kind      string // as it was written, for the agent, which knows the cluster's kinds
	written   string // as Clouddriver writes it
	namespace string
	name      string
}

func newTarget(full, namespace string) (target, error) {
	kind, name, err := manifest.SplitName(full)
	if err != nil {
		return target{}, err
	}
	return target{kind: kind, written: writtenKind(kind), namespace: namespace, name: name}, nil
}

// writtenKind writes a kind as Clouddriver does, whatever it is called: "rs",
// "ReplicaSet" and "replicasets.apps" are "replicaSet".
func writtenKind(kind string) string {
	if r, err := views.Find(nil, kind); err == nil {
		return manifest.KindName(r.Kind)
	}
	return manifest.KindName(vedette.ParseKind(kind))
}

// String returns the full name, "replicaSet web-v003".
func (t target) String() string { return t.written + " " + t.name }

func (t target) args() vedette.Target {
	return vedette.Target{Kind: t.kind, Namespace: t.namespace, Name: t.name}
}

// text is a string that may have been written as a number or a boolean; null is
// as good as nothing.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(raw []byte) error {
	var s string
	switch raw[0] {
	case 'n':
		return nil
	case '{', '[':
		return errors.New("must be a text")
	case '"':
		if err := json.Unmarshal(raw, &s); err != nil {
			return errors.New("must be a text")
		}
	default:
		s = string(raw)
	}
	if err := textcheck.Name(s); err != nil {
		return fmt.Errorf("must not hold %w", err)
	}
	*t = text(s)
	return nil
}

// whole is a number without fraction that may have been written as a string.
type whole int64

// UnmarshalJSON implements json.Unmarshaler.
func (w *whole) UnmarshalJSON(raw []byte) error {
	s := strings.TrimSpace(string(bytes.Trim(raw, `"`)))
	n, err := strconv.ParseInt(strings.TrimSuffix(s, ".0"), 10, 32)
	if err != nil {
		return errors.New("must be a whole number")
	}
	*w = whole(n)
	return nil
}

// number reads a whole number that may be missing: null and "" are no number.
type number struct{ n *int64 }

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(raw []byte) error {
	if s := string(raw); s == "null" || s == `""` {
		return nil
	}
	var w whole
	if err := w.UnmarshalJSON(raw); err != nil {
		return err
	}
	v := int64(w)
	n.n = &v
	return nil
}

// texts is a list of strings; a single one is a list too, and nulls are dropped.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var all []text
	if raw[0] != '[' {
		all = make([]text, 1)
		raw = append(append([]byte{'['}, raw...), ']')
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return listError(err)
	}
	for _, s := range all {
		if s != "" {
			*t = append(*t, string(s))
		}
	}
	return nil
}

// listError says what is wrong with a list of texts.
func listError(err error) error {
	var wrong *textcheck.Error
	if errors.As(err, &wrong) {
		return fmt.Errorf("must not hold %w", wrong)
	}
	return errors.New("must be a list of texts")
}

// parse reads a description. Its error names the member that is wrong and
// repeats nothing of what it holds.
func parse[D any](raw json.RawMessage) (*D, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, vedette.Errorf(vedette.Invalid, "the description of the operation is no object")
	}
	d := new(D)
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, wrongMember[D](members, err)
	}
	return d, nil
}

// wrongMember finds the member by reading each alone: what a type of ours has
// to say against a value does not tell where it stood.
func wrongMember[D any](members map[string]json.RawMessage, err error) error {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		alone, _ := json.Marshal(map[string]json.RawMessage{name: members[name]}) // what was decoded can be encoded
		if err := json.Unmarshal(alone, new(D)); err != nil {
			return vedette.Errorf(vedette.Invalid, "%s of the description can't be read: %s", name, reason(err))
		}
	}
	return vedette.Errorf(vedette.Invalid, "the description can't be read: %s", reason(err))
}

func reason(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		sort, _, _ := strings.Cut(wrong.Value, " ") // a number's value follows
		return fmt.Sprintf("it is of type %s", sort)
	}
	var shown *vedette.Error
	if errors.As(err, &shown) {
		return shown.Message
	}
	return "it " + err.Error()
}
