package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// patch changes one object by a strategic merge patch, a JSON merge patch or a JSON patch.
func (r *run) patch(ctx context.Context, a vedette.PatchArgs) result {
	body, contentType, err := parsePatch(a)
	if err != nil {
		return errorResult(err)
	}
	p, err := r.resolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	raw, status, err := r.sendChecked(ctx, p, contentType, body)
	err = r.maskPatchValues(p, body, err)
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}

// patchObject sends a patch once: API servers retry conflicts of patches without a resourceVersion.
func (r *run) patchObject(ctx context.Context, p resourcePath, contentType string, body []byte) ([]byte, int, error) {
	return r.do(ctx, p, request{method: http.MethodPatch, contentType: contentType, body: body,
		query: url.Values{"fieldManager": {"kubectl-patch"}}, nonIdempotent: contentType == contentTypeJSONPatch})
}

func parsePatch(a vedette.PatchArgs) ([]byte, string, error) {
	switch strings.ToLower(string(a.Type)) {
	case string(vedette.JSONPatch):
		body, err := parseJSONPatch(a.Patch)
		return body, contentTypeJSONPatch, err
	case string(vedette.MergePatch):
		body, err := parseMergePatch(a.Patch)
		return body, contentTypeMergePatch, err
	case "", string(vedette.StrategicPatch):
		body, err := parseMergePatch(a.Patch)
		return body, contentTypeStrategicPatch, err
	}
	return nil, "", vedette.Errorf(vedette.Invalid, "%q is not a type of patch: write strategic, merge or json", a.Type)
}

func parseMergePatch(raw []byte) ([]byte, error) {
	o, err := manifest.ParseObject(raw, "patch")
	if err != nil {
		return nil, err
	}
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
	if err := exactjson.Unmarshal(raw, &steps, countedAlready); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the patch is not a list of steps, as the type json requires%s",
			manifest.SyntaxErrorOffset(err))
	}
	return raw, nil
}
