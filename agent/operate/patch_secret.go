package operate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// step is one step of a JSON patch that puts nothing but its own value anywhere.
type step struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// secretSteps checks a JSON patch of a Secret and encodes it anew. Steps that copy or
// move would bring data to where it can be read, be it in the answer to a dry run, and
// a test tells whether a guess is right. What is sent is what was checked: a member
// that stands twice in a step, or that is not known, does not reach the API server.
func secretSteps(raw []byte) ([]byte, error) {
	var members []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the steps of a JSON patch must be objects%s", offset(err))
	}
	steps := make([]step, len(members))
	for i, m := range members {
		s, err := parseStep(m)
		if err != nil || !s.literal() {
			return nil, vedette.Errorf(vedette.Invalid, "step %d of the patch can't be carried out on a Secret, because it could tell its data: "+
				"steps may add and replace by a value of their own, remove, and test labels and %s", i+1, strings.Join(tested, ", "))
		}
		steps[i] = s
	}
	return json.Marshal(steps)
}

func parseStep(members map[string]json.RawMessage) (step, error) {
	s := step{Value: members["value"]}
	if err := json.Unmarshal(members["op"], &s.Op); err != nil {
		return s, err
	}
	return s, json.Unmarshal(members["path"], &s.Path)
}

// tested are what a step may test of a Secret, beside a label: all of it is told in
// answers.
var tested = []string{"/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion", "/type", "/immutable"}

// literal reports whether all that a step tells of a Secret may be told.
func (s step) literal() bool {
	switch {
	case s.Op == "remove":
		return true
	case s.Value == nil: // API servers panic over some of these
		return false
	case s.Op == "add", s.Op == "replace":
		return true
	case s.Op == "test":
		label, is := strings.CutPrefix(s.Path, "/metadata/labels/")
		return slices.Contains(tested, s.Path) || is && !strings.Contains(label, "/")
	}
	return false
}
