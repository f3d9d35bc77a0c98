package disclosure

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// redactedPointers returns where an object has values that redaction removes. managedFields are
// excluded, because they contain no values.
func redactedPointers(s *request.Sender, p request.Path, raw []byte) ([]jsonPointer, error) {
	obj, err := s.Redact(p.Resource, raw)
	if err != nil {
		return nil, err
	}
	var full, redacted object
	if err := manifest.Decode(raw, &full); err != nil {
		return nil, request.InvalidResponse(p, err)
	}
	if err := manifest.Decode(obj.Body, &redacted); err != nil {
		return nil, request.InvalidResponse(p, err)
	}
	if meta, _ := full["metadata"].(object); meta != nil {
		delete(meta, "managedFields")
	}
	return appendRedacted(nil, nil, full, redacted), nil
}

// appendRedacted appends the pointers to where full differs from redacted.
func appendRedacted(all []jsonPointer, path jsonPointer, full, redacted any) []jsonPointer {
	switch w := full.(type) {
	case object:
		if t, ok := redacted.(object); ok {
			for name, value := range w {
				redactedValue, found := t[name]
				if child := append(slices.Clip(path), name); found {
					all = appendRedacted(all, child, value, redactedValue)
				} else {
					all = append(all, child)
				}
			}
			return all
		}
	case []any:
		if t, ok := redacted.([]any); ok && len(t) == len(w) { // redaction removes no elements
			for i, value := range w {
				all = appendRedacted(all, append(slices.Clip(path), strconv.Itoa(i)), value, t[i])
			}
			return all
		}
	}
	if reflect.DeepEqual(full, redacted) {
		return all
	}
	return append(all, path)
}
