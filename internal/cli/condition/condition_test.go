package condition_test

import (
	"strings"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/vedette-io/vedette/internal/cli/condition"
)

const deployment = `{"metadata":{"name":"web","generation":3,"labels":{"a/b":"c"}},"spec":{"replicas":2,"big":10000000,"half":0.5,"no":false},
	"status":{"observedGeneration":3,"conditions":[{"type":"Available","status":"True"},{"type":"Old","status":"True","observedGeneration":2},{"type":"Odd","status":7},"text"]}}`

func TestConditionsAreParsedAndEvaluated(t *testing.T) {
	var object map[string]any
	if err := kjson.Unmarshal([]byte(deployment), &object); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text    string
		met     bool
		wantErr string // of the parser or of the evaluation
	}{
		{"condition=Available", true, ""},
		{"condition=available=TRUE", true, ""},
		{"condition=Available=False", false, ""},
		{"condition=Old", false, ""},
		{"condition=Odd=7", false, ""},
		{"condition=Missing", false, ""},
		{"create", true, ""},
		{"Delete", false, ""},
		{"jsonpath={.spec.replicas}=2", true, ""},
		{"jsonpath=.spec.replicas=2", true, ""},
		{"jsonpath=spec.replicas='2'", true, ""},
		{"jsonpath={.spec.replicas}=3", false, ""},
		{"jsonpath={.spec.big}=10000000", true, ""},
		{"jsonpath={.spec.half}=0.5", true, ""},
		{"jsonpath={.spec.no}=false", true, ""},
		{"jsonpath={.spec.missing}", false, ""},
		{"jsonpath={.spec}", true, ""},
		{`jsonpath={.status.conditions[?(@.type=="Available")].status}=True`, true, ""},
		{`jsonpath={.metadata.labels.a/b}=c`, true, ""},
		{"jsonpath={.spec}=x", false, "nested object or list"},
		{"jsonpath={.status.conditions[*].type}=x", false, "more than one value"},
		{"jsonpath={.a}=", false, "has to have a value after equal sign"},
		{"jsonpath={.a}=b=c", false, "jsonpath wait format must be"},
		{"jsonpath=", false, "unexpected path string"},
		{"jsonpath={.a", false, "unexpected path string"},
		{"jsonpath={.a[}", false, "is not a JSONPath expression"},
		{"jsonpath={.status.conditions['x']}", false, ""},
		{"condition==True", false, "has no name"},
		{"ready", false, "unrecognized condition"},
		{"", false, "unrecognized condition"},
	} {
		c, err := condition.Parse(tt.text)
		met := false
		if err == nil {
			met, err = c.IsMet(object)
		}
		if met != tt.met || (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%s: got %v, %v, want %v and an error with %q", tt.text, met, err, tt.met, tt.wantErr)
		}
	}
}

func FuzzCondition(f *testing.F) {
	f.Add("jsonpath={.a}=b", `{"a":"b"}`)
	f.Add("condition=Ready", deployment)
	f.Fuzz(func(t *testing.T, text, document string) {
		c, err := condition.Parse(text)
		if err != nil {
			return
		}
		var object map[string]any
		if kjson.Unmarshal([]byte(document), &object) == nil {
			_, _ = c.IsMet(object) // must not panic, whatever the object has
		}
	})
}
