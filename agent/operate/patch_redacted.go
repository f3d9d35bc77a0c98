package operate

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// countedAlready are the limits of documents whose memory the operation has reserved.
var countedAlready = exactjson.Limits{Bytes: exactjson.Unlimited}

// checkJSONPatch checks a JSON patch of an object that is not a Secret. No step may copy, move or test a
// value that redaction removes, because the response would reveal it: data of Secrets that it embeds, and
// values that rules redact.
func (r *run) checkJSONPatch(ctx context.Context, p resourcePath, body []byte) (guardedPatch, error) {
	values, err := parsePatchedValues(body)
	if err != nil || len(values) == 0 {
		return guardedPatch{body: body}, err
	}
	raw, _, err := r.do(ctx, p, request{})
	if err != nil {
		return guardedPatch{}, err
	}
	redacted, err := r.redactedPointers(p, raw)
	if err != nil {
		return guardedPatch{}, err
	}
	for _, s := range values {
		reveals := s.pointer.overlaps
		if s.isWritten {
			reveals = s.pointer.decidesRedaction
		}
		if slices.ContainsFunc(redacted, reveals) {
			return guardedPatch{}, vedette.Errorf(vedette.Invalid, "step %d of the patch is rejected, because it could reveal a redacted value of %s: "+
				"use add or replace with a value in the patch", s.number, p.key())
		}
	}
	version := resourceVersionOf(raw)
	body, err = testVersion(body, version)
	return guardedPatch{body, version}, err
}

// checkKinds rejects the kinds that a patch writes if values beside them are redacted because of them.
func checkKinds(p resourcePath, kinds, redacted []jsonPointer) error {
	for _, kind := range kinds {
		if slices.ContainsFunc(redacted, kind.decidesRedaction) {
			return vedette.Errorf(vedette.Invalid, "the patch is rejected, because it could reveal a redacted value of %s: it changes %s, beside which "+
				"a value is redacted: leave it as it is, or replace the whole object", p.key(), "/"+strings.Join(kind, "/"))
		}
	}
	return nil
}

// appendKinds appends the pointers to the kinds and apiVersions in a merge patch, except those of the object itself.
// JSON merge patches replace lists, but strategic ones merge them, in any order.
func appendKinds(all []jsonPointer, path jsonPointer, patch any) []jsonPointer {
	switch p := patch.(type) {
	case object:
		for name, value := range p {
			child := append(slices.Clip(path), name)
			if len(path) > 0 && (name == kindMember || name == apiVersionMember) {
				all = append(all, child) // also one that is an object, which no Secret has
			}
			all = appendKinds(all, child, value)
		}
	case []any:
		for _, element := range p {
			all = appendKinds(all, append(slices.Clip(path), "-"), element)
		}
	}
	return all
}

// patchedValue is a value of the object that a step of a JSON patch reads or writes.
type patchedValue struct {
	number    int // of the step, from 1
	pointer   jsonPointer
	isWritten bool // the step decides what it becomes
}

// parsePatchedValues returns the values that a patch reads, and those names and kinds that it writes, because
// redaction depends on them. Invalid steps are left to the API server.
func parsePatchedValues(body []byte) ([]patchedValue, error) {
	var steps []map[string]any
	if err := exactjson.Unmarshal(body, &steps, countedAlready); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the steps of a JSON patch must be objects%s", manifest.SyntaxErrorOffset(err))
	}
	var all []patchedValue
	for i, s := range steps {
		path, from := parseJSONPointer(manifest.NestedString(s, "path")), parseJSONPointer(manifest.NestedString(s, "from"))
		switch s["op"] {
		case "test":
			all = append(all, patchedValue{number: i + 1, pointer: path})
			continue
		case "copy", "move":
			all = append(all, patchedValue{number: i + 1, pointer: from})
		}
		for _, written := range []jsonPointer{path, from} { // a move removes its source
			if written.isDecisive() {
				all = append(all, patchedValue{number: i + 1, pointer: written, isWritten: true})
			}
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
	if err := exactjson.Unmarshal(raw, &full, countedAlready); err != nil {
		return nil, decodeError(p, err)
	}
	if err := exactjson.Unmarshal(obj.Body, &redacted, countedAlready); err != nil {
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

// The members on which the redaction of values beside them depends: the name of an environment variable, and the
// kind and the apiVersion of an embedded Secret.
const nameMember, kindMember, apiVersionMember = "name", "kind", "apiVersion"

// isDecisive reports whether the redaction of other values may depend on the value of the pointer.
func (p jsonPointer) isDecisive() bool {
	return len(p) > 0 && slices.Contains([]string{nameMember, kindMember, apiVersionMember}, p[len(p)-1])
}

// decidesRedaction reports whether a redacted value would not be redacted if the value of the pointer was another one.
func (p jsonPointer) decidesRedaction(redacted jsonPointer) bool {
	parent := p[:len(p)-1]
	if p[len(p)-1] == nameMember {
		return len(redacted) == len(p) && parent.overlaps(redacted)
	}
	return len(redacted) >= len(p) && parent.overlaps(redacted) && len(parent) > 0
}

func isIndex(part string) bool {
	_, err := strconv.Atoi(part)
	return err == nil || part == "-"
}
