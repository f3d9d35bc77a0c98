package operate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/disclosure"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// patch changes one object by a strategic merge patch, a JSON merge patch or a JSON patch.
func (r *run) patch(ctx context.Context, a vedette.PatchArgs) result {
	body, contentType, err := parsePatch(a)
	if err != nil {
		return errorResult(err)
	}
	p, err := r.ResolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	r.fieldManager = a.FieldManager
	raw, status, err := r.sendChecked(ctx, p, contentType, body)
	err = r.MaskPatchValues(p, body, err)
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}

// patchManager is kubectl's field manager of a patch.
const patchManager = "kubectl-patch"

// patchObject sends a patch once: API servers retry conflicts of patches without a resourceVersion.
func (r *run) patchObject(ctx context.Context, p request.Path, manager, contentType string, body []byte) ([]byte, int, error) {
	return r.Do(ctx, p, request.Request{Method: http.MethodPatch, ContentType: contentType, Body: body,
		FieldManager: manager, NonIdempotent: contentType == request.ContentTypeJSONPatch})
}

func parsePatch(a vedette.PatchArgs) ([]byte, string, error) {
	switch strings.ToLower(string(a.Type)) {
	case string(vedette.JSONPatch):
		body, err := parseJSONPatch(a.Patch)
		return body, request.ContentTypeJSONPatch, err
	case string(vedette.MergePatch):
		body, err := parseMergePatch(a.Patch)
		return body, request.ContentTypeMergePatch, err
	case "", string(vedette.StrategicPatch):
		body, err := parseMergePatch(a.Patch)
		return body, request.ContentTypeStrategicPatch, err
	}
	return nil, "", vedette.Errorf(vedette.Invalid, "%q is not a type of patch: write strategic, merge or json", a.Type)
}

func parseMergePatch(raw []byte) ([]byte, error) {
	o, err := manifest.ParseObject(raw, "patch")
	if err != nil {
		return nil, err
	}
	manifest.RemoveAccount(o)
	return json.Marshal(o)
}

// parseJSONPatch reads a JSON patch. It checks only that it is a list; the API server checks the
// steps.
func parseJSONPatch(raw []byte) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] != '[' && raw[0] != '{' {
		var err error
		raw, err = manifest.YAMLToJSON(raw, "patch")
		if err != nil {
			return nil, err
		}
	}
	var steps []json.RawMessage
	if err := manifest.Decode(raw, &steps); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the patch is not a list of steps, as the type json requires%s",
			manifest.SyntaxErrorOffset(err))
	}
	return raw, nil
}

// sendChecked checks a patch and sends it. If the object has changed in between, it does both again.
func (r *run) sendChecked(ctx context.Context, p request.Path, contentType string, body []byte) (raw []byte, status int, err error) {
	_ = r.RetryOnConflict(ctx, func() error {
		var patch disclosure.CheckedPatch
		patch, err = disclosure.CheckPatch(ctx, r.Sender, p, contentType, body)
		if err == nil {
			raw, status, err = r.patchObject(ctx, p, cmp.Or(r.fieldManager, patchManager), contentType, patch.Body)
		}
		if patch.Version == "" {
			return nil // the conflict is with a version that the patch itself names
		}
		if request.StatusCode(err) == http.StatusUnprocessableEntity && r.LiveVersion(ctx, p) != patch.Version {
			err = request.ChangedMeanwhile(p) // the step that tests the version failed
		}
		return err
	})
	return raw, status, err
}
