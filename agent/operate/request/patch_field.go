package request

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// hasPatchCause reports whether a patch was rejected because its result cannot be decoded: a value has the wrong type or form.
func (e *StatusError) hasPatchCause() bool {
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
func (s *Sender) describeWrongField(ctx context.Context, req Request, message string) string {
	if wrongFieldPattern.MatchString(message) {
		return ""
	}
	if req.ContentType == ContentTypeStrategicPatch {
		if problem := s.wrongFieldOfMergePatch(ctx, req); problem != "" {
			return " (" + problem + ")"
		}
	}
	fields := patchedFields(req.ContentType, req.Body)
	if len(fields) == 0 || len(fields) > maxNamedFields {
		return ""
	}
	return fmt.Sprintf(" (the patch has %s)", strings.Join(fields, ", "))
}

// maxNamedFields is how many fields of a patch an error names.
const maxNamedFields = 5

// wrongFieldOfMergePatch sends a patch once more, as a dry run of a JSON merge patch. Its result would be another object, but the API
// server decodes it before it does anything else, and names the field that it cannot decode. The result is "" if it names none.
func (s *Sender) wrongFieldOfMergePatch(ctx context.Context, req Request) string {
	req = req.withQuery("fieldValidation", "Ignore") // the directives of strategic merge patches are unknown fields
	req.ContentType, req.IsManifest = ContentTypeMergePatch, false
	req.Consume = discard
	_, _, err := s.AsDryRun().Send(ctx, req)
	statusErr := AsStatusError(err)
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
	if contentType == ContentTypeJSONPatch {
		var steps []struct {
			Path string `json:"path"`
		}
		_ = manifest.Decode(body, &steps) // the API server says what is wrong with it
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
