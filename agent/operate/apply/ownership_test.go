package apply

import (
	"encoding/json"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// FuzzManagedFields checks that no managed fields cause a panic, and that what is picked is a part of the
// object.
func FuzzManagedFields(f *testing.F) {
	f.Add([]byte(`{"spec":{"a":[{"name":"x","v":1},{"name":"y"}],"s":["p","q"]},"metadata":{"managedFields":[{"manager":"kubectl","operation":"Apply",
		"fieldsV1":{"f:spec":{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:v":{}}},"f:s":{"v:\"q\"":{}}}}}]}}`))
	f.Add([]byte(`{"spec":[],"metadata":{"managedFields":[{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"k:{":{},"v:":{},"i:0":{}}}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var tree object
		if kjson.Unmarshal(raw, &tree) != nil {
			return
		}
		full, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		owned := ownershipOf(tree, KubectlManager)
		part, err := json.Marshal(owned.original(tree))
		if err != nil || len(part) > len(full)+2 {
			t.Errorf("original of %s: got %s (%v)", full, part, err)
		}
		owned.keepOthers(manifest.Copy(tree), tree)
		owned.keepOthers(object{}, tree)
	})
}

// TestOriginalIsWhatTheManagerApplied picks what a manager applied.
func TestOriginalIsWhatTheManagerApplied(t *testing.T) {
	var tree object
	if err := kjson.Unmarshal([]byte(`{"spec":{"a":[{"name":"x","v":1,"w":2},{"name":"y"}],"s":["p","q"],"m":{"i":[1,2]},"other":true},
		"metadata":{"managedFields":[{"manager":"other","operation":"Apply","fieldsV1":{"f:spec":{"f:other":{}}}},
		{"manager":"kubectl","operation":"Update","fieldsV1":{"f:spec":{"f:other":{}}}},
		{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}}},"f:s":{"v:\"q\"":{}},"f:m":{"f:i":{}}}}}]}}`), &tree); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(ownershipOf(tree, KubectlManager).original(tree))
	if want := `{"spec":{"a":[{"name":"x","v":1}],"m":{"i":[1,2]},"s":["q"]}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
