package manifest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// The types in this file accept what Clouddriver's decoder (Jackson) accepts: stages send what pipeline expressions result in,
// which is often a string.

// text is a string that can also be a number or a boolean.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case 'n':
		return nil
	case '"':
		return json.Unmarshal(raw, (*string)(t))
	case '{', '[':
		return vedette.Errorf(vedette.Invalid, "a text of the description is an object or a list: it must be a string")
	}
	*t = text(raw)
	return nil
}

// sequenceNumber is an integer that can be missing.
type sequenceNumber struct{ number *int }

func (s *sequenceNumber) UnmarshalJSON(raw []byte) error {
	var t text
	if err := t.UnmarshalJSON(raw); err != nil {
		return err
	}
	trimmed := strings.TrimSpace(string(t))
	if trimmed == "" {
		return nil
	}
	n, err := strconv.ParseInt(trimmed, 10, 32)
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "the sequence in the moniker of the description must be a whole number")
	}
	number := int(n)
	s.number = &number
	return nil
}

// OptionalBool is a boolean that can be missing, a number, or a string. Null and "" have no value, which is not the same as missing.
type OptionalBool struct {
	value *bool
	isSet bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *OptionalBool) UnmarshalJSON(raw []byte) error {
	b.isSet = true
	isText := raw[0] == '"'
	var t text
	if err := t.UnmarshalJSON(raw); err != nil {
		return notABoolean()
	}
	switch trimmed := strings.TrimSpace(string(t)); {
	case trimmed == "", isText && trimmed == "null":
		return nil
	case slices.Contains([]string{"true", "True", "TRUE"}, trimmed):
		b.set(true)
	case slices.Contains([]string{"false", "False", "FALSE"}, trimmed):
		b.set(false)
	default:
		n, err := strconv.ParseInt(trimmed, 10, 32)
		if err != nil || isText {
			return notABoolean()
		}
		b.set(n != 0)
	}
	return nil
}

func (b *OptionalBool) set(value bool) { b.value = &value }

func notABoolean() error {
	return vedette.Errorf(vedette.Invalid, "an option of the description is not a boolean: use true or false")
}

// OrDefault returns the value. A missing one is the fallback, and null is false.
func (b *OptionalBool) OrDefault(fallback bool) bool {
	if !b.isSet {
		return fallback
	}
	return b.value != nil && *b.value
}

// parseEnum returns the value of an enumeration, whose case counts, or "" if it is null.
func parseEnum(field string, value *string, allowed ...string) (string, error) {
	if value == nil {
		return "", nil
	}
	trimmed := strings.TrimSpace(*value)
	if !slices.Contains(allowed, trimmed) {
		return "", vedette.Errorf(vedette.Invalid, "%s of the description must be one of %s, in this case, or null", field, strings.Join(allowed, ", "))
	}
	return trimmed, nil
}
