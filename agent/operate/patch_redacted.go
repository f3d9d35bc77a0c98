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

// checkJSONPatch checks a JSON patch before it is sent, and returns what is to be sent. No
// step may copy, move or test what redaction keeps back: of a Secret that is all of its
// data; of other objects Secrets that they embed, and what rules redact.
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
			return nil, vedette.Errorf(vedette.Invalid, "step %d of the patch can't be carried out, because it could tell a value that is not shown of %s: "+
				"write a value of its own, by add or replace", s.number, p.key())
		}
	}
	return body, nil
}

// patchSource is what a step of a JSON patch reads of the object.
type patchSource struct {
	number  int // of the step, from 1
	pointer jsonPointer
}

// parsePatchSources returns what the steps of a patch read. Of steps that are none, the API
// server judges.
func parsePatchSources(body []byte) ([]patchSource, error) {
	var steps []map[string]any // a struct would take "FROM" for from, as no API server does
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

// redactedPointers returns where an object holds what redaction keeps back. managedFields hold
// no values.
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

// appendRedacted appends where a tree differs from what is told of it.
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
		if t, ok := redacted.([]any); ok && len(t) == len(w) { // nothing is cut from lists
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

// jsonPointer is a JSON pointer: the names and indexes on the way to a value.
type jsonPointer []string

// parseJSONPointer reads a pointer as API servers do, which pass over what stands before the
// first slash. One without a slash is taken for the whole object.
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

// overlaps reports whether one of two values may be the other one, or a part of it.
// Earlier steps may have moved the elements of lists, so that all indexes are alike.
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
