package objectformat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"

	"github.com/vedette-io/vedette"
)

// Sorter sorts objects by --sort-by. It keeps one value of each object, and not the object.
type Sorter struct {
	path       *jsonpath.JSONPath
	expression string
}

// NewSorter returns a sorter by a path; nil for an empty one.
func NewSorter(path string) (*Sorter, error) {
	if path == "" {
		return nil, nil
	}
	parsed, expression, err := parsePath("sorting", path)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "invalid --sort-by %q: %w", path, err)
	}
	return &Sorter{parsed, expression}, nil
}

// Key is the value by which an object is sorted. Its zero value is that of an object without the field.
type Key struct {
	value    any
	quantity *resource.Quantity // of a text that is one
}

// KeyOf returns the key of an object. It fails for fields that have no order, such as lists.
func (s *Sorter) KeyOf(object map[string]any) (Key, error) {
	value, err := firstValue(s.path, object)
	if err != nil {
		return Key{}, fmt.Errorf("sort by %s: %w", s.expression, err)
	}
	k := Key{value: value}
	switch v := value.(type) {
	case nil, int64, float64:
	case string:
		if q, err := resource.ParseQuantity(v); err == nil {
			k.quantity = &q
		}
	default:
		return Key{}, vedette.Errorf(vedette.Invalid, "Field %s in an object is an unsortable type: %T", s.expression, value)
	}
	return k, nil
}

// Append appends the key of an object. Without a sorter there are no keys.
func (s *Sorter) Append(keys []Key, object map[string]any) ([]Key, error) {
	if s == nil {
		return nil, nil
	}
	key, err := s.KeyOf(object)
	return append(keys, key), err
}

// Sort sorts items by their keys. Items without the field come first, as with kubectl; equal ones stay in their order.
// It fails if no item has the field, which is then misspelt.
func Sort[T any](s *Sorter, items []T, keyOf func(T) Key) error {
	if len(items) == 0 {
		return nil
	}
	if !slices.ContainsFunc(items, func(item T) bool { return keyOf(item).value != nil }) {
		return vedette.Errorf(vedette.Invalid, "couldn't find any field with path %q in the list of objects", s.expression)
	}
	var failed error
	slices.SortStableFunc(items, func(a, b T) int {
		order, err := keyOf(a).compare(keyOf(b))
		failed = cmp.Or(failed, err)
		return order
	})
	if failed != nil {
		return vedette.Errorf(vedette.Invalid, "sort by %s: %w", s.expression, failed)
	}
	return nil
}

// errMixed is the error of values that cannot be compared, because clusters may have different kinds under one name.
var errMixed = errors.New("it is a number in one object, and a text in another")

func (k Key) compare(other Key) (int, error) {
	switch {
	case k.value == nil && other.value == nil:
		return 0, nil
	case k.value == nil:
		return -1, nil
	case other.value == nil:
		return 1, nil
	case k.quantity != nil && other.quantity != nil:
		return k.quantity.Cmp(*other.quantity), nil
	}
	a, aIsText := k.value.(string)
	b, bIsText := other.value.(string)
	switch {
	case aIsText && bIsText:
		return cmp.Compare(a, b), nil
	case aIsText || bIsText:
		return 0, errMixed
	}
	if x, ok := k.value.(int64); ok {
		if y, ok := other.value.(int64); ok {
			return cmp.Compare(x, y), nil
		}
	}
	return cmp.Compare(float(k.value), float(other.value)), nil
}

func float(number any) float64 {
	if n, ok := number.(int64); ok {
		return float64(n)
	}
	return number.(float64)
}
