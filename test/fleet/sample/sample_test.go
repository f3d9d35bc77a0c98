package sample_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

type object struct {
	Kind, APIVersion string
	Metadata         struct {
		Namespace, Name, UID, ResourceVersion string
		OwnerReferences                       []struct{ Name, UID string }
	}
}

func TestObjectsAreWhatTheirNumberSays(t *testing.T) {
	c := sample.New(7)
	for _, r := range sample.Kinds() {
		names := map[vedette.Key]bool{}
		for i := range 1200 {
			raw := c.Append(nil, r.Kind, i, 40+uint64(i))
			var o object
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatalf("%s %d: %v\n%s", r.Kind, i, err, raw)
			}
			key := vedette.Key{Kind: r.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
			if key != c.Key(r.Kind, i) || o.Metadata.UID != c.UID(r.Kind, i) || o.Kind != r.Kind.Name || o.APIVersion != r.APIVersion() {
				t.Fatalf("%s %d: got %+v", r.Kind, i, o)
			}
			if names[key] {
				t.Fatalf("got two objects with key %s", key)
			}
			names[key] = true
			if (key.Namespace != "") != r.Namespaced {
				t.Errorf("%s: got namespace %q", key, key.Namespace)
			}
			if !bytes.Equal(raw, sample.New(7).Append(nil, r.Kind, i, 40+uint64(i))) {
				t.Fatalf("%s differs when generated again", key)
			}
		}
	}
}

func TestMetadataIsThatOfTheObject(t *testing.T) {
	c := sample.New(7)
	for _, r := range sample.Kinds() {
		var whole, partial struct {
			Kind     string
			Metadata json.RawMessage
			Data     json.RawMessage
		}
		for raw, into := range map[string]any{string(c.Append(nil, r.Kind, 3, 9)): &whole, string(c.AppendMetadata(nil, r.Kind, 3, 9)): &partial} {
			if err := json.Unmarshal([]byte(raw), into); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(whole.Metadata, partial.Metadata) || partial.Kind != "PartialObjectMetadata" || partial.Data != nil {
			t.Errorf("%s: got metadata %s, want %s", r.Kind, partial.Metadata, whole.Metadata)
		}
	}
}

func TestPodsBelongToReplicaSets(t *testing.T) {
	c := sample.New(7)
	var pod object
	if err := json.Unmarshal(c.Append(nil, vedette.Kind{Name: "Pod"}, 9, 1), &pod); err != nil {
		t.Fatal(err)
	}
	owner := pod.Metadata.OwnerReferences[0]
	rs := vedette.Kind{Group: "apps", Name: "ReplicaSet"}
	if owner.Name != c.Key(rs, 5).Name || owner.UID != c.UID(rs, 5) {
		t.Errorf("pod 9: got owner %s (%s), want ReplicaSet 5, %s", owner.Name, owner.UID, c.Key(rs, 5))
	}
}

func TestClustersDiffer(t *testing.T) {
	pod := vedette.Kind{Name: "Pod"}
	if a, b := sample.New(1).UID(pod, 0), sample.New(2).UID(pod, 0); a == b {
		t.Errorf("two clusters have the uid %s", a)
	}
}

func BenchmarkAppend(b *testing.B) {
	c := sample.New(7)
	pod := vedette.Kind{Name: "Pod"}
	var buf []byte
	for i := 0; b.Loop(); i++ {
		buf = c.Append(buf[:0], pod, i, uint64(i))
	}
	b.SetBytes(int64(len(buf)))
}
