package operate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// patchStep is one step of a JSON patch that puts nothing but its own value anywhere.
type patchStep struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// checkSecretPatch checks a JSON patch of a Secret and encodes it anew. Steps that copy or
// move would bring data to where it can be read, be it in the answer to a dry run, and
// a test tells whether a guess is right. What is sent is what was checked: a member
// that stands twice in a step, or that is not known, does not reach the API server.
func checkSecretPatch(raw []byte) ([]byte, error) {
	var members []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the steps of a JSON patch must be objects%s", manifest.SyntaxErrorOffset(err))
	}
	steps := make([]patchStep, len(members))
	for i, m := range members {
		s, err := parsePatchStep(m)
		if err != nil || !s.isSafe() {
			return nil, vedette.Errorf(vedette.Invalid, "step %d of the patch can't be carried out on a Secret, because it could tell its data: "+
				"steps may add and replace by a value of their own, remove, and test labels and %s", i+1, strings.Join(testablePaths, ", "))
		}
		steps[i] = s
	}
	return json.Marshal(steps)
}

func parsePatchStep(members map[string]json.RawMessage) (patchStep, error) {
	s := patchStep{Value: members["value"]}
	if err := json.Unmarshal(members["op"], &s.Op); err != nil {
		return s, err
	}
	return s, json.Unmarshal(members["path"], &s.Path)
}

// testablePaths are what a step may test of a Secret, beside a label: all of it is told in
// answers.
var testablePaths = []string{"/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion", "/type", "/immutable"}

// isSafe reports whether all that a step tells of a Secret may be told.
func (s patchStep) isSafe() bool {
	switch {
	case s.Op == "remove":
		return true
	case s.Value == nil: // API servers panic over some of these
		return false
	case s.Op == "add", s.Op == "replace":
		return true
	case s.Op == "test":
		label, isLabel := strings.CutPrefix(s.Path, "/metadata/labels/")
		return slices.Contains(testablePaths, s.Path) || isLabel && !strings.Contains(label, "/")
	}
	return false
}
