package disclosure

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// checkJSONPatch checks a JSON patch of an object that is not a Secret. No step may copy, move or test a
// value that redaction removes, because the response would reveal it: data of Secrets that it embeds, and
// values that rules redact.
func checkJSONPatch(ctx context.Context, s *request.Sender, p request.Path, body []byte) (CheckedPatch, error) {
	values, err := parsePatchedValues(body)
	if err != nil || len(values) == 0 {
		return CheckedPatch{Body: body}, err
	}
	raw, _, err := s.Do(ctx, p, request.Request{})
	if err != nil {
		return CheckedPatch{}, err
	}
	redacted, err := redactedPointers(s, p, raw)
	if err != nil {
		return CheckedPatch{}, err
	}
	for _, value := range values {
		reveals := value.pointer.overlaps
		if value.isWritten {
			reveals = value.pointer.decidesRedaction
		}
		if slices.ContainsFunc(redacted, reveals) {
			return CheckedPatch{}, vedette.Errorf(vedette.Invalid, "step %d of the patch is rejected, because it could reveal a redacted value of %value: "+
				"use add or replace with a value in the patch", value.number, p.Key())
		}
	}
	version := request.ResourceVersionOf(raw)
	body, err = testVersion(body, version)
	return CheckedPatch{body, version}, err
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
	if err := manifest.Decode(body, &steps); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the steps of a JSON patch must be objects%s", manifest.SyntaxErrorOffset(err))
	}
	var all []patchedValue
	for i, step := range steps {
		path, from := parseJSONPointer(manifest.NestedString(step, "path")), parseJSONPointer(manifest.NestedString(step, "from"))
		switch step["op"] {
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
