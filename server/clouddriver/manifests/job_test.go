package manifests

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/store/read"
)

// TestMissingFailureTextsAreNull checks that texts that a container did not leave are "null".
func TestMissingFailureTextsAreNull(t *testing.T) {
	for status, want := range map[string]string{
		`"terminated":{"exitCode":1,"reason":"Error"}`:                "exited with code: 1.\n Status: Error.\n Logs: null",
		`"terminated":{"exitCode":137,"message":"killed"}`:            "exited with code: 137.\n Status: null.\n Logs: killed",
		`"waiting":{"reason":"ErrImagePull","message":"no such one"}`: "exited with code: .\n Status: ErrImagePull.\n Logs: no such one",
	} {
		row := read.Row{Object: vedette.Object{Key: vedette.Key{Name: "bad-1"},
			Body: []byte(`{"status":{"containerStatuses":[{"name":"main","state":{` + status + `}}]}}`)}}
		pod, err := newJobPod(row, func(document []byte, v any) error { return exactjson.Unmarshal(document, v, web.ObjectLimits) })
		if err != nil {
			t.Fatal(err)
		}
		if got := firstFailure([]jobPod{pod}); got != "Pod: 'bad-1' had errors.\n Container: 'main' "+want {
			t.Errorf("%s: got %q", status, got)
		}
	}
}
