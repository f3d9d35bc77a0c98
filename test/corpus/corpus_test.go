package corpus_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/corpus"
)

func TestObjectFieldsMatchTheirBody(t *testing.T) {
	c := corpus.New(1)
	seen := map[vedette.Key]bool{}
	for range 500 {
		item := c.Next()
		if seen[item.Object.Key] {
			t.Errorf("%s was generated twice", item.Object.Key)
		}
		seen[item.Object.Key] = true
		for _, text := range [][]byte{item.Object.Body, item.Raw} {
			var got struct {
				Kind, APIVersion string
				Metadata         struct {
					Name, Namespace, UID, ResourceVersion string
					Labels                                map[string]string
					Annotations                           map[string]string
				}
			}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%s: %v\n%s", item.Object.Key, err, text)
			}
			m, o := got.Metadata, item.Object
			if got.Kind != o.Kind.Name || got.APIVersion != o.APIVersion || m.Name != o.Name || m.Namespace != o.Namespace || m.UID != o.UID ||
				m.ResourceVersion != o.ResourceVersion || !reflect.DeepEqual(m.Labels, o.Labels) || !reflect.DeepEqual(m.Annotations, o.Annotations) {
				t.Errorf("the header of %s differs from its body", o.Key)
			}
		}
	}
}

func TestPodsHaveReferenceSize(t *testing.T) {
	c := corpus.New(2)
	body, raw := 0, 0
	for range 100 {
		pod := c.Pod()
		body, raw = body+len(pod.Object.Body), raw+len(pod.Raw)
	}
	if body/100 < 4500 || body/100 > 5500 || raw/100 < 7200 || raw/100 > 8200 {
		t.Errorf("got pods of %d bytes, and %d with managedFields", body/100, raw/100)
	}
}

func TestSameSeedMakesSameObjects(t *testing.T) {
	if a, b := corpus.New(3).Objects(100), corpus.New(3).Objects(100); !reflect.DeepEqual(a, b) {
		t.Error("two corpora of the same seed differ")
	}
	if a, b := corpus.New(3).Objects(1), corpus.New(4).Objects(1); reflect.DeepEqual(a, b) {
		t.Error("two seeds generate the same objects")
	}
}

func TestTouchChangesVersionOnly(t *testing.T) {
	c := corpus.New(5)
	pod := c.Pod().Object
	touched := c.Touch(pod)
	if touched.UID != pod.UID || touched.ResourceVersion == pod.ResourceVersion || !json.Valid(touched.Body) || len(touched.Body) < len(pod.Body) {
		t.Errorf("touching %s: got %s", pod.Body, touched.Body)
	}
}

func TestRawIsTheBodyWithManagedFields(t *testing.T) {
	c := corpus.New(6)
	for range 20 {
		item := c.Next()
		var body, raw map[string]any
		if err := json.Unmarshal(item.Object.Body, &body); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(item.Raw, &raw); err != nil {
			t.Fatal(err)
		}
		metadata, ok := raw["metadata"].(map[string]any)
		if !ok || metadata["managedFields"] == nil {
			t.Fatalf("no managedFields in %s", item.Raw)
		}
		delete(metadata, "managedFields")
		if !reflect.DeepEqual(body, raw) {
			t.Errorf("%s differs in more than managedFields", item.Object.Key)
		}
	}
}
