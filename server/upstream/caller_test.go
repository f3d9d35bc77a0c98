package upstream

import (
	"net/http"
	"reflect"
	"testing"
)

// TestCallerAtAnotherServer sends who asks to another server. Values of headers are bytes.
func TestCallerAtAnotherServer(t *testing.T) {
	remote := &Remote{}
	header := http.Header{"X-Spinnaker-User": {"j\xfcrgen"}, "X-Spinnaker-Accounts": {"a", "b"}, "Authorization": {"Bearer t"}}
	raw, err := (&callerRemote{remote, "kubernetes", header}).Caller()
	if err != nil {
		t.Fatal(err)
	}
	again, err := remote.Again(raw)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&callerRemote{remote, "kubernetes", header}); !reflect.DeepEqual(again, want) {
		t.Errorf("got %+v, want %+v", again, want)
	}
	if _, err := remote.Again([]byte(`{"header":{"A":["not base64!"]}}`)); err == nil {
		t.Error("what is not valid is taken")
	}
}
