package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
)

// TestEncodeUpsertMatchesGeneratedCode compares the hand-written encoding with the
// generated one.
func TestEncodeUpsertMatchesGeneratedCode(t *testing.T) {
	for _, o := range []vedette.Object{
		{Key: vedette.Key{Name: "n"}, Body: []byte(`{}`)},
		{
			Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "ns", Name: "p"}, UID: "u", ResourceVersion: "7", APIVersion: "v1",
			Created: 1700000000, Owner: vedette.Owner{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Name: "rs", UID: "o"},
			Labels: map[string]string{"a": "b", "empty": "", "z": "y"}, Annotations: map[string]string{"c": "d"}, Summary: []byte(`{"x":1}`), Body: make([]byte, 300),
		},
	} {
		b := EncodeUpsert(o, true)
		if len(b) != cap(b) {
			t.Errorf("got a capacity of %d bytes for %d", cap(b), len(b))
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
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}
}

// TestAppendHeaderMatchesGeneratedCode compares the hand-written encoding with the
// generated one.
func TestAppendHeaderMatchesGeneratedCode(t *testing.T) {
	for _, feed := range []vedette.Feed{{}, {Kind: vedette.Kind{Name: "Pod"}}, {Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "shop"}} {
		want := &Record{Account: "prod", Term: 1 << 40}
		if feed != (vedette.Feed{}) {
			want.Feed = FromFeed(feed)
		}
		var got Record
		if err := proto.Unmarshal(AppendHeader(nil, "prod", 1<<40, feed), &got); err != nil || !proto.Equal(&got, want) {
			t.Errorf("got %v, %v; want %v", &got, err, want)
		}
	}
}

func BenchmarkEncodeUpsert(b *testing.B) {
	o := vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "shop", Name: "checkout-v012-7d9f8b6c5d-x2x7k"},
		UID: "1f6a8c1e-8a53-4c0e-9b7e-0b6f6d4c2a11", ResourceVersion: "184467440", APIVersion: "v1", Created: 1700000000,
		Owner:       vedette.Owner{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Name: "checkout-v012-7d9f8b6c5d", UID: "7c1a5f1e-33b7-4ae6-8f07-5d0ad17b2b6e"},
		Labels:      map[string]string{"app": "checkout", "pod-template-hash": "7d9f8b6c5d", "app.kubernetes.io/name": "checkout", "tier": "backend"},
		Annotations: map[string]string{"artifact.spinnaker.io/name": "checkout", "moniker.spinnaker.io/application": "checkout"},
		Summary:     make([]byte, 200), Body: make([]byte, 4800)}
	b.ReportAllocs()
	for b.Loop() {
		EncodeUpsert(o, false)
	}
}
