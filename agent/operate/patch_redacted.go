package operate

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// checkJSONPatch checks a JSON patch and returns the one to send. No step may copy, move or test a
// value that redaction removes, because the response would reveal it. That is all data of a Secret;
// in other objects, Secrets that they embed, and values that rules redact.
func (r *run) checkJSONPatch(ctx context.Context, p resourcePath, body []byte) ([]byte, error) {
	if p.isSecret() {
		return checkSecretPatch(body)
	}
	sources, err := parsePatchSources(body)
	if err != nil || len(sources) == 0 {
		return body, err
	}
	raw, _, err := r.do(ctx, p, request{})
	if err != nil {
		return nil, err
	}
	redacted, err := r.redactedPointers(p, raw)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if slices.ContainsFunc(redacted, s.pointer.overlaps) {
			return nil, vedette.Errorf(vedette.Invalid, "step %d of the patch is rejected, because it could reveal a redacted value of %s: "+
				"use add or replace with a value in the patch", s.number, p.key())
		}
	}
	return body, nil
}

// patchSource is a value of the object that a step of a JSON patch reads.
type patchSource struct {
	number  int // of the step, from 1
	pointer jsonPointer
}

// parsePatchSources returns the values that a patch reads. Invalid steps are left to the API server.
func parsePatchSources(body []byte) ([]patchSource, error) {
	var steps []map[string]any // decoding into a struct ignores case, but API servers do not
	if err := json.Unmarshal(body, &steps); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the steps of a JSON patch must be objects%s", manifest.SyntaxErrorOffset(err))
	}
	var all []patchSource
	for i, s := range steps {
		switch s["op"] {
		case "test":
			all = append(all, patchSource{i + 1, parseJSONPointer(manifest.NestedString(s, "path"))})
		case "copy", "move":
			all = append(all, patchSource{i + 1, parseJSONPointer(manifest.NestedString(s, "from"))})
		}
	}
	return all, nil
}

// redactedPointers returns where an object has values that redaction removes. managedFields are
// excluded, because they contain no values.
func (r *run) redactedPointers(p resourcePath, raw []byte) ([]jsonPointer, error) {
	obj, err := r.redactObject(p.Resource, raw)
	if err != nil {
		return nil, err
	}
	var full, redacted object
	if err := json.Unmarshal(raw, &full); err != nil {
		return nil, decodeError(p, err)
	}
	if err := json.Unmarshal(obj.Body, &redacted); err != nil {
		return nil, decodeError(p, err)
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

// jsonPointer is a JSON pointer: the names and indexes on the path to a value.
type jsonPointer []string

// parseJSONPointer reads a pointer as API servers do, which ignore the text before the first slash.
// A pointer without a slash means the whole object.
func parseJSONPointer(text string) jsonPointer {
	_, text, found := strings.Cut(text, "/")
	if !found {
		return nil
	}
	parts := jsonPointer(strings.Split(text, "/"))
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}

// overlaps reports whether one of two values may be a part of the other, or the same. All indexes
// are treated as equal, because earlier steps may have moved the elements of lists.
func (p jsonPointer) overlaps(other jsonPointer) bool {
	for i := range min(len(p), len(other)) {
		if p[i] != other[i] && !(isIndex(p[i]) && isIndex(other[i])) {
			return false
		}
	}
	return true
}

func isIndex(part string) bool {
	_, err := strconv.Atoi(part)
	return err == nil || part == "-"
}
