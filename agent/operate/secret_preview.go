package operate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// maxComparedKeys is how many keys of a Secret are compared one by one.
const maxComparedKeys = 100

// previewSecret returns how the keys of a Secret's data would change by an apply whose dry run has succeeded. The data
// is never requested: managed fields name the keys, and whether a value is the same is asked by a dry run of a JSON
// patch that tests it. It shows no more than the apply itself, which says whether it changed something.
func (r *run) previewSecret(ctx context.Context, m manifest.Manifest, namespace string) ([]byte, error) {
	p, err := r.resolveManifest(ctx, &m, namespace)
	if err != nil {
		return nil, err
	}
	before, _, err := r.Do(ctx, p, request.Request{})
	if request.IsNotFound(err) {
		before, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	live, complete, err := dataKeys(before)
	if err != nil {
		return nil, err
	}
	merged, _, err := dataKeys(r.secretPreview)
	if err != nil {
		return nil, err
	}
	desired := desiredData(m)
	preview := vedette.SecretPreview{Keys: map[string]vedette.DataChange{}, Incomplete: !complete}
	for key := range live {
		preview.Keys[key] = vedette.DataUnchanged
		if _, isDesired := desired[key]; !merged[key] && !isDesired {
			preview.Keys[key] = vedette.DataRemoved
		}
	}
	if before == nil {
		for key := range desired {
			preview.Keys[key] = vedette.DataAdded
		}
		return json.Marshal(preview)
	}
	if err := r.compareData(ctx, p, desired, live, &preview); err != nil {
		return nil, err
	}
	return json.Marshal(preview)
}

// compareData sets how the keys of a manifest would change in a live Secret.
func (r *run) compareData(ctx context.Context, p request.Path, desired map[string]string, live map[string]bool,
	preview *vedette.SecretPreview) error {
	equal, err := r.hasData(ctx, p, desired)
	if err != nil {
		return err
	}
	for i, key := range slices.Sorted(maps.Keys(desired)) {
		same := equal
		if !equal && len(desired) > 1 && i < maxComparedKeys {
			same, err = r.hasData(ctx, p, map[string]string{key: desired[key]})
			if err != nil {
				return err
			}
		}
		preview.Incomplete = preview.Incomplete || !equal && i >= maxComparedKeys
		switch {
		case same:
			preview.Keys[key] = vedette.DataUnchanged
		case live[key]:
			preview.Keys[key] = vedette.DataChanged
		default:
			preview.Keys[key] = vedette.DataAdded
		}
	}
	return nil
}

// hasData reports whether a live Secret has these values, in base64.
func (r *run) hasData(ctx context.Context, p request.Path, values map[string]string) (bool, error) {
	if len(values) == 0 {
		return true, nil
	}
	steps := []object{}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		steps = append(steps, object{"op": "test", "path": "/data/" + escape.Replace(key), "value": values[key]})
	}
	body, err := json.Marshal(steps)
	if err != nil {
		return false, err
	}
	_, _, err = r.AsDryRun().Do(ctx, p, request.Request{Method: http.MethodPatch, ContentType: request.ContentTypeJSONPatch, Body: body})
	switch request.StatusCode(err) {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return false, nil
	}
	return err == nil, err
}

// desiredData returns the data of a Secret's manifest in base64, as the API server stores it.
func desiredData(m manifest.Manifest) map[string]string {
	all := map[string]string{}
	data, _ := m.Object["data"].(object)
	for key, value := range data {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil { // it may have line breaks
			text = base64.StdEncoding.EncodeToString(decoded)
		}
		if value != nil {
			all[key] = text
		}
	}
	data, _ = m.Object["stringData"].(object)
	for key, value := range data {
		if text, isString := value.(string); isString {
			all[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	return all
}

// dataKeys returns the keys of a Secret's data that its managed fields name, and whether it has managed fields. Of a Secret
// that does not exist, no key is a complete answer.
func dataKeys(raw []byte) (keys map[string]bool, complete bool, err error) {
	keys = map[string]bool{}
	if raw == nil {
		return keys, true, nil
	}
	var secret struct {
		Metadata struct {
			ManagedFields []struct {
				Fields struct {
					Data map[string]json.RawMessage `json:"f:data"`
				} `json:"fieldsV1"`
			} `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := manifest.Decode(raw, &secret); err != nil {
		return nil, false, vedette.Errorf(vedette.Unavailable, "the cluster's response has invalid metadata: %w", err)
	}
	for _, entry := range secret.Metadata.ManagedFields {
		for path := range entry.Fields.Data {
			if key, isKey := strings.CutPrefix(path, "f:"); isKey {
				keys[key] = true
			}
		}
	}
	return keys, len(secret.Metadata.ManagedFields) > 0, nil
}
