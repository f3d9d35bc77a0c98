package operate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// hasPatchCause reports whether a patch was rejected because its result cannot be decoded: a value has the wrong type or form.
func (e *statusError) hasPatchCause() bool {
	for _, c := range e.causes {
		if c.Field == patchField {
			return true
		}
	}
	return false
}

// wrongFieldPattern matches a decoding error that names a field. It quotes no values but numbers.
var wrongFieldPattern = regexp.MustCompile(
	`json: cannot unmarshal (object|array|string|bool|number)( [-+.\deE]+)? into Go struct field [\w.]+ of type [\w.\[\]*]+`)

// describeWrongField returns what names the field that an API server rejects in a patch, to be appended to its message. Of a
// strategic merge patch, API servers name only the type. kubectl prints the whole patch, which may have redacted values.
func (r *run) describeWrongField(ctx context.Context, req request, message string) string {
	if wrongFieldPattern.MatchString(message) {
		return ""
	}
	if req.contentType == contentTypeStrategicPatch {
		if problem := r.wrongFieldOfMergePatch(ctx, req); problem != "" {
			return " (" + problem + ")"
		}
	}
	fields := patchedFields(req.contentType, req.body)
	if len(fields) == 0 || len(fields) > maxNamedFields {
		return ""
	}
	return fmt.Sprintf(" (the patch has %s)", strings.Join(fields, ", "))
}

// maxNamedFields is how many fields of a patch an error names.
const maxNamedFields = 5

// wrongFieldOfMergePatch sends a patch once more, as a dry run of a JSON merge patch. Its result would be another object, but the API
// server decodes it before it does anything else, and names the field that it cannot decode. The result is "" if it names none.
func (r *run) wrongFieldOfMergePatch(ctx context.Context, req request) string {
	query := maps.Clone(req.query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("fieldValidation", "Ignore") // the directives of strategic merge patches are unknown fields
	req = request{method: req.method, path: req.path, query: query, accept: req.accept, contentType: contentTypeMergePatch, body: req.body,
		consume: discard}
	_, _, err := r.asDryRun().send(ctx, req)
	statusErr := asStatusError(err)
	if statusErr == nil {
		return ""
	}
	for _, c := range statusErr.causes {
		if problem := wrongFieldPattern.FindString(c.Message); c.Field == patchField && problem != "" {
			return problem
		}
	}
	return ""
}

func discard(body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

// patchedFields returns the fields that a patch sets, without their values.
func patchedFields(contentType string, body []byte) []string {
	if contentType == contentTypeJSONPatch {
		var steps []struct {
			Path string `json:"path"`
		}
		_ = exactjson.Unmarshal(body, &steps, countedAlready) // the API server says what is wrong with it
		var paths []string
		for _, s := range steps {
			paths = append(paths, s.Path)
		}
		return slices.DeleteFunc(paths, func(path string) bool { return path == "/metadata/resourceVersion" || path == "" })
	}
	patch, err := manifest.ParseObject(body, "patch")
	if err != nil {
		return nil
	}
	return appendFields(nil, "", patch)
}

// appendFields appends the paths of the values in a patch, sorted. It leaves out directives, and what the agent adds itself.
func appendFields(all []string, path string, value any) []string {
	switch value := value.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if !strings.HasPrefix(name, "$") && name != apply.LastApplied {
				all = appendFields(all, strings.TrimPrefix(path+"."+name, "."), value[name])
			}
		}
		return all
	case []any:
		for i, element := range value {
			all = appendFields(all, fmt.Sprintf("%s[%d]", path, i), element)
		}
		return all
	}
	if path == "metadata.resourceVersion" {
		return all
	}
	return append(all, path)
}
