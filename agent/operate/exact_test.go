package operate

import (
	"testing"

	"github.com/vedette-io/vedette/agent/operate/request"
)

// TestObjectsAreReadByExactNames reads a custom resource that has members beside those of Kubernetes, whose
// names differ by case. A deletion by selector would delete the object that they name.
func TestObjectsAreReadByExactNames(t *testing.T) {
	raw := []byte(`{"metadata":{"namespace":"n","name":"own","uid":"u","resourceVersion":"1"},` +
		`"Metadata":{"Namespace":"n","Name":"victim","UID":"v","ResourceVersion":"2"},"METADATA":{"name":"victim"}}`)
	meta, err := parseListedMeta(raw)
	if err != nil || meta.name != "own" || meta.uid != "u" {
		t.Errorf("got %+v, %v, want the object's own name and uid", meta, err)
	}
	if got := request.ResourceVersionOf(raw); got != "1" {
		t.Errorf("got the resourceVersion %s, want 1", got)
	}
	partial, err := parseMeta(raw)
	if err != nil || partial.Name != "own" {
		t.Errorf("got %v, %v, want the object's own name", partial, err)
	}
	if _, err := parseListedMeta([]byte(`{"metadata":{"name":"own","name":"victim"}}`)); err == nil {
		t.Error("got no error of a name that occurs twice")
	}
}
