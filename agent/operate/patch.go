package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
)

// patch changes one object by a patch of one of three languages.
func (o *Operator) patch(ctx context.Context, a vedette.PatchArgs) result {
	body, contentType, err := parsePatch(a)
	if err != nil {
		return failed(err)
	}
	p, err := o.find(ctx, a.Target)
	if err != nil {
		return failed(err)
	}
	if contentType == typeJSONPatch {
		if body, err = o.checkSteps(ctx, p, body); err != nil {
			return failed(err)
		}
	}
	raw, status, err := o.patchObject(ctx, p, contentType, body)
	err = veilPatch(ctx, p, body, err)
	if err != nil {
		return failed(err)
	}
	return o.told(p, raw, status)
}

// patchObject sends a patch. Of a JSON patch, twice is not the same as once. A
// conflict stands in the way of a patch that names a resourceVersion, which
// trying again does not cure, and of one that lost a race in the API server,
// which that tries again itself.
func (o *Operator) patchObject(ctx context.Context, p place, contentType string, body []byte) ([]byte, int, error) {
	return o.do(ctx, p, call{method: http.MethodPatch, contentType: contentType, body: body,
		query: url.Values{"fieldManager": {"kubectl-patch"}}, once: contentType == typeJSONPatch})
}

func parsePatch(a vedette.PatchArgs) ([]byte, string, error) {
	switch strings.ToLower(string(a.Type)) {
	case string(vedette.JSONPatch):
		body, err := parseSteps(a.Patch)
		return body, typeJSONPatch, err
	case string(vedette.MergePatch):
		body, err := parseMerge(a.Patch)
		return body, typeMerge, err
	case "", string(vedette.StrategicPatch):
		body, err := parseMerge(a.Patch)
		return body, typeStrategic, err
	}
	return nil, "", vedette.Errorf(vedette.Invalid, "%q is no type of patch: write strategic, merge or json", a.Type)
}

func parseMerge(raw []byte) ([]byte, error) {
	o, err := parseObject(raw, "patch")
	if err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// parseSteps reads a JSON patch: a list, of whose steps the API server judges.
func parseSteps(raw []byte) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] != '[' && raw[0] != '{' {
		var err error
		if raw, err = fromYAML(raw, "patch"); err != nil {
			return nil, err
		}
	}
	var steps []json.RawMessage
	if err := json.Unmarshal(raw, &steps); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the patch is no list of steps, as type json asks for%s", offset(err))
	}
	return raw, nil
}
