package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
)

// TestEncodeUpsert holds the hand-written encoding to the generated one.
func TestEncodeUpsert(t *testing.T) {
	for _, o := range []vedette.Object{
		{Key: vedette.Key{Name: "n"}, Body: []byte(`{}`)},
		{
			Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "ns", Name: "p"}, UID: "u", ResourceVersion: "7", APIVersion: "v1",
			Created: 1700000000, Owner: vedette.Owner{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Name: "rs", UID: "o"},
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Summary: []byte(`{"x":1}`), Body: make([]byte, 300),
		},
	} {
		b, err := EncodeUpsert(o, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != cap(b) {
			t.Errorf("%d bytes were reserved for %d", cap(b), len(b))
		}
		var rec Record
		if err := proto.Unmarshal(b, &rec); err != nil {
			t.Fatal(err)
		}
		want := &Upsert{Namespace: o.Namespace, Name: o.Name, Uid: o.UID, ResourceVersion: o.ResourceVersion, ApiVersion: o.APIVersion,
			Created: o.Created, Labels: o.Labels, Annotations: o.Annotations, Summary: o.Summary, Body: o.Body, Live: true}
		if o.Owner.Name != "" {
			want.Owner = &Owner{Kind: FromKind(o.Owner.Kind), Name: o.Owner.Name, Uid: o.Owner.UID}
		}
		if got := rec.GetUpsert(); !proto.Equal(got, want) {
			t.Errorf("decoded %v\nwant    %v", got, want)
		}
	}
}
