package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/operationjson"
)

// TestOperationRequestMatchesOpenAPI checks that the document names every verb and every
// field of an operation, and which verb takes which field.
func TestOperationRequestMatchesOpenAPI(t *testing.T) {
	doc, _ := loadOpenAPI(t)
	schema := doc.Components.Schemas["OperationRequest"].Value
	fields := map[string]bool{}
	var verbs []string
	for _, spec := range vedette.Verbs() {
		verbs = append(verbs, string(spec.Verb))
		if spec.Streams {
			continue
		}
		for _, field := range operationjson.Fields(spec) {
			fields[field] = true
		}
		if line := describeFields(spec); !strings.Contains(schema.Description, line+"\n") {
			t.Errorf("openapi.yaml: the description of OperationRequest must have the line\n%s", line)
		}
	}
	got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(fields))
	if !slices.Equal(got, want) {
		t.Errorf("openapi.yaml: the properties of OperationRequest are\ngot  %v\nwant %v", got, want)
	}
	var listed []string
	for _, verb := range doc.Components.Schemas["Verb"].Value.Enum {
		listed = append(listed, fmt.Sprint(verb))
	}
	slices.Sort(verbs)
	slices.Sort(listed)
	if !slices.Equal(listed, verbs) {
		t.Errorf("openapi.yaml: the values of Verb are\ngot  %v\nwant %v", listed, verbs)
	}
}

// describeFields lists the fields of a verb: the required ones, then the optional ones in
// brackets.
func describeFields(spec vedette.VerbSpec) string {
	envelope := operationjson.Fields(vedette.VerbSpec{Args: vedette.DiscoverArgs{}})
	var required, optional []string
	for _, field := range operationjson.Fields(spec) {
		switch {
		case slices.Contains(spec.Required, field):
			required = append(required, field)
		case !slices.Contains(envelope, field):
			optional = append(optional, field)
		}
	}
	line := fmt.Sprintf("- %s: %s", spec.Verb, strings.Join(required, ", "))
	if len(optional) > 0 {
		line = strings.TrimRight(line, " ") + " [" + strings.Join(optional, ", ") + "]"
	}
	return strings.TrimRight(line, ": ")
}

// TestLogParametersMatchOpenAPI checks that openapi.yaml has all query parameters of logs.
func TestLogParametersMatchOpenAPI(t *testing.T) {
	doc, _ := loadOpenAPI(t)
	var got []string
	for path, item := range doc.Paths.Map() {
		if strings.HasSuffix(path, "/logs") {
			for _, parameter := range item.Get.Parameters {
				if parameter.Value.In == "query" {
					got = append(got, parameter.Value.Name)
				}
			}
		}
	}
	want := operationjson.LogParameters()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("openapi.yaml: the parameters of logs are\ngot  %v\nwant %v", got, want)
	}
}
