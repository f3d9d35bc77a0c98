package compare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// decodeValue decodes JSON for comparison: numbers become integer or decimal.
func decodeValue(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return normalize(v), nil
}

// integer and decimal are numbers without and with a decimal point. They differ even if they are
// equal, because Orca casts numbers of manifests to Double and fails if they have no point.
type (
	integer string
	decimal float64
)

func (n integer) MarshalJSON() ([]byte, error) { return []byte(n), nil }

func (n decimal) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(n), 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return []byte(text), nil
}

func normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = normalize(value)
		}
	case []any:
		for i, value := range v {
			v[i] = normalize(value)
		}
	case json.Number:
		return number(v)
	}
	return v
}

func number(n json.Number) any {
	if !strings.ContainsAny(n.String(), ".eE") {
		return integer(n)
	}
	f, err := n.Float64()
	if err != nil { // out of range: compare the text
		return n
	}
	return decimal(f)
}

// canonical returns a text that is equal for equal values, whatever the order of lists.
func canonical(v any) string {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		var b strings.Builder
		for _, key := range keys {
			fmt.Fprintf(&b, "%q:%s,", key, canonical(v[key]))
		}
		return "{" + b.String() + "}"
	case []any:
		items := make([]string, 0, len(v))
		for _, item := range v {
			items = append(items, canonical(item))
		}
		slices.Sort(items)
		return "[" + strings.Join(items, ",") + "]"
	}
	return encode(v)
}

// Canonical returns the body of an answer as text that is equal for equal answers: with sorted lists
// and members, and without the time of an error.
func Canonical(a Answer) (json.RawMessage, error) {
	v, err := decodeValue(a.Body)
	if err != nil {
		return nil, fmt.Errorf("decode the body of %s: %w", a.Path, err)
	}
	if a.Status >= 400 {
		dropTimestamp(v)
	}
	return json.RawMessage(encode(sorted(v))), nil
}

// sorted sorts all lists in a value.
func sorted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = sorted(value)
		}
	case []any:
		for i, value := range v {
			v[i] = sorted(value)
		}
		slices.SortStableFunc(v, func(a, b any) int { return cmp.Compare(canonical(a), canonical(b)) })
	}
	return v
}

// encode returns a decoded value as JSON.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // cannot happen: v was decoded from JSON
	}
	return strings.TrimSuffix(b.String(), "\n")
}
