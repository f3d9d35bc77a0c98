package read

import (
	"encoding/json"
	"testing"
)

func TestSelectorsAreReadInEachForm(t *testing.T) {
	for raw, want := range map[string]string{
		`{"matchLabels":{"a":"b","c":"d"}}`: "a=b,c=d", `{"matchExpressions":[{"key":"a","operator":"In","values":["x","y"]}]}`: "a in (x,y)",
		`{"app":"web"}`: "app=web", `{}`: "", `null`: "", ``: "", `{"matchLabels":{}}`: "", `7`: "",
	} {
		if got := selectorOf(json.RawMessage(raw)); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}
