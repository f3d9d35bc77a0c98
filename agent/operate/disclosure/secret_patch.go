package disclosure

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// patchStep is a step of a JSON patch that does not read the object.
type patchStep struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// checkSecretPatch checks a JSON patch of a Secret and encodes it again. A copy or move could bring
// data to where it is readable, for example in the response to a dry run, and a test confirms a
// guess. The patch is encoded again so that what is sent is what was checked: duplicate or unknown
// members of a step do not reach the API server.
func checkSecretPatch(raw []byte) ([]byte, error) {
	var members []map[string]json.RawMessage
	if err := manifest.Decode(raw, &members); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the steps of a JSON patch must be objects%s", manifest.SyntaxErrorOffset(err))
	}
	steps := make([]patchStep, len(members))
	for i, m := range members {
		s, err := parsePatchStep(m)
		if err != nil || !s.isSafe() {
			return nil, vedette.Errorf(vedette.Invalid, "step %d of the patch is rejected, because it could reveal the data of a Secret: "+
				"a step may add, replace or remove a value, and test labels and %s", i+1, strings.Join(testablePaths, ", "))
		}
		steps[i] = s
	}
	return json.Marshal(steps)
}

func parsePatchStep(members map[string]json.RawMessage) (patchStep, error) {
	s := patchStep{Value: members["value"]}
	if err := manifest.Decode(members["op"], &s.Op); err != nil {
		return s, err
	}
	return s, manifest.Decode(members["path"], &s.Path)
}

// testablePaths are the values that a step may test beside labels. Responses contain them anyway.
var testablePaths = []string{"/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion", "/type", "/immutable"}

// isSafe reports whether the response to a step reveals no data.
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
