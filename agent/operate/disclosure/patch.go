package disclosure

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// object is a JSON object. Whole numbers in it are int64.
type object = map[string]any

// CheckedPatch is a patch that was checked against the live object.
type CheckedPatch struct {
	Body []byte
	// Version is that of the object that the patch was checked against, and the only one that it applies
	// to: a later one may embed another Secret. It is empty for a patch that changes no redaction.
	Version string
}

// CheckPatch checks the patch of a user.
func CheckPatch(ctx context.Context, s *request.Sender, p request.Path, contentType string, body []byte) (CheckedPatch, error) {
	switch {
	case contentType == request.ContentTypeJSONPatch && p.IsSecret():
		body, err := checkSecretPatch(body)
		return CheckedPatch{Body: body}, err
	case contentType == request.ContentTypeJSONPatch:
		return checkJSONPatch(ctx, s, p, body)
	case p.IsSecret():
		return CheckedPatch{Body: body}, nil
	}
	return checkMergePatch(s, p, body, func() ([]byte, error) {
		live, _, err := s.Do(ctx, p, request.Request{})
		return live, err
	})
}

// CheckThreeWayPatch checks a merge patch against the live object that it was computed from.
func CheckThreeWayPatch(s *request.Sender, p request.Path, live, body []byte) ([]byte, error) {
	if p.IsSecret() {
		return body, nil
	}
	checked, err := checkMergePatch(s, p, body, func() ([]byte, error) { return live, nil })
	return checked.Body, err
}

// checkMergePatch checks a merge patch. It must not change the kind or the apiVersion of an embedded
// Secret whose data it keeps.
func checkMergePatch(s *request.Sender, p request.Path, body []byte, readLive func() ([]byte, error)) (CheckedPatch, error) {
	patch, err := manifest.ParseObject(body, "patch")
	if err != nil {
		return CheckedPatch{}, err
	}
	kinds := appendKinds(nil, nil, patch)
	if len(kinds) == 0 {
		return CheckedPatch{Body: body}, nil
	}
	live, err := readLive()
	if request.IsNotFound(err) {
		return CheckedPatch{Body: body}, nil // the API server says the same of the patch
	}
	if err != nil {
		return CheckedPatch{}, err
	}
	redacted, err := redactedPointers(s, p, live)
	if err != nil {
		return CheckedPatch{}, err
	}
	if err := checkKinds(p, kinds, redacted); err != nil {
		return CheckedPatch{}, err
	}
	version := request.ResourceVersionOf(live)
	if err := bindToVersion(p, patch, version); err != nil {
		return CheckedPatch{}, err
	}
	return CheckedPatch{manifest.Manifest{Object: patch}.Encode(), version}, nil
}

// bindToVersion lets a patch or a manifest apply to one version of its object only. If it is for another
// version, it cannot be checked.
func bindToVersion(p request.Path, patch object, version string) error {
	meta, _ := patch["metadata"].(object)
	if meta == nil {
		meta = object{}
		patch["metadata"] = meta
	}
	if named := manifest.NestedString(patch, "metadata", "resourceVersion"); named != "" && named != version {
		return request.ChangedMeanwhile(p)
	}
	meta["resourceVersion"] = version
	return nil
}

// testVersion returns a JSON patch that applies to one version of its object only.
func testVersion(body []byte, version string) ([]byte, error) {
	step, err := json.Marshal(object{"op": "test", "path": "/metadata/resourceVersion", "value": version})
	if err != nil {
		return nil, fmt.Errorf("encode the version %q: %w", version, err)
	}
	steps := bytes.TrimPrefix(bytes.TrimSpace(body), []byte("["))
	return slices.Concat([]byte("["), step, []byte(","), steps), nil // there is one step at least
}

// checkKinds rejects the kinds that a patch writes if values beside them are redacted because of them.
func checkKinds(p request.Path, kinds, redacted []jsonPointer) error {
	for _, kind := range kinds {
		if slices.ContainsFunc(redacted, kind.decidesRedaction) {
			return vedette.Errorf(vedette.Invalid, "the patch is rejected, because it could reveal a redacted value of %s: it changes %s, beside which "+
				"a value is redacted: leave it as it is, or replace the whole object", p.Key(), "/"+strings.Join(kind, "/"))
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
