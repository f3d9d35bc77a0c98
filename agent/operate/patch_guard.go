package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// guardedPatch is a patch that was checked against the live object.
type guardedPatch struct {
	body []byte
	// version is that of the object that the patch was checked against, and the only one that it applies
	// to: a later one may embed another Secret. It is empty for a patch that changes no redaction.
	version string
}

// sendChecked checks a patch and sends it. If the object has changed in between, it does both again.
func (r *run) sendChecked(ctx context.Context, p resourcePath, contentType string, body []byte) (raw []byte, status int, err error) {
	_ = r.retryOnConflict(ctx, func() error {
		var patch guardedPatch
		patch, err = r.checkPatch(ctx, p, contentType, body)
		if err == nil {
			raw, status, err = r.patchObject(ctx, p, contentType, patch.body)
		}
		if patch.version == "" {
			return nil // the conflict is with a version that the patch itself names
		}
		if statusCode(err) == http.StatusUnprocessableEntity && r.liveVersion(ctx, p) != patch.version {
			err = changedMeanwhile(p) // the step that tests the version failed
		}
		return err
	})
	return raw, status, err
}

func (r *run) checkPatch(ctx context.Context, p resourcePath, contentType string, body []byte) (guardedPatch, error) {
	switch {
	case contentType == contentTypeJSONPatch && p.isSecret():
		body, err := checkSecretPatch(body)
		return guardedPatch{body: body}, err
	case contentType == contentTypeJSONPatch:
		return r.checkJSONPatch(ctx, p, body)
	case p.isSecret():
		return guardedPatch{body: body}, nil
	}
	return r.checkMergePatch(ctx, p, body)
}

// checkMergePatch checks a merge patch. It must not change the kind or the apiVersion of an embedded
// Secret whose data it keeps.
func (r *run) checkMergePatch(ctx context.Context, p resourcePath, body []byte) (guardedPatch, error) {
	patch, err := manifest.ParseObject(body, "patch")
	if err != nil {
		return guardedPatch{}, err
	}
	kinds := appendKinds(nil, nil, patch)
	if len(kinds) == 0 {
		return guardedPatch{body: body}, nil
	}
	live, _, err := r.do(ctx, p, request{})
	if isNotFound(err) {
		return guardedPatch{body: body}, nil // the API server says the same of the patch
	}
	if err != nil {
		return guardedPatch{}, err
	}
	return r.checkPatchedKinds(p, live, patch, kinds)
}

// checkPatchedKinds checks the kinds that a merge patch writes into a live object.
func (r *run) checkPatchedKinds(p resourcePath, live []byte, patch object, kinds []jsonPointer) (guardedPatch, error) {
	redacted, err := r.redactedPointers(p, live)
	if err != nil {
		return guardedPatch{}, err
	}
	if err := checkKinds(p, kinds, redacted); err != nil {
		return guardedPatch{}, err
	}
	version := resourceVersionOf(live)
	if err := bindToVersion(p, patch, version); err != nil {
		return guardedPatch{}, err
	}
	return guardedPatch{manifest.Manifest{Object: patch}.Encode(), version}, nil
}

// bindToVersion lets a patch or a manifest apply to one version of its object only. If it is for another
// version, it cannot be checked.
func bindToVersion(p resourcePath, patch object, version string) error {
	meta, _ := patch["metadata"].(object)
	if meta == nil {
		meta = object{}
		patch["metadata"] = meta
	}
	if named := manifest.NestedString(patch, "metadata", "resourceVersion"); named != "" && named != version {
		return changedMeanwhile(p)
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

func changedMeanwhile(p resourcePath) error {
	return &statusError{Status: http.StatusConflict, Reason: string(metav1.StatusReasonConflict),
		Message: fmt.Sprintf("%s was changed by others while the patch was checked: try again", p.key())}
}
