package objectformat

import "encoding/json"

// ConvertNumbers replaces each json.Number in a decoded document by an int64 or, if it is none, by a float64, which are
// what templates compare.
func ConvertNumbers(document map[string]any) {
	for name, value := range document {
		document[name] = converted(value)
	}
}

func converted(value any) any {
	switch v := value.(type) {
	case map[string]any:
		ConvertNumbers(v)
	case []any:
		for i := range v {
			v[i] = converted(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil {
			return n
		}
		return v.String() // larger than any number of Go
	}
	return value
}
