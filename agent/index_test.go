package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestSnapshotOfObjectsWithoutUID compares a list with the indexes that servers send: which objects are
// sent, and which digests are dropped.
func TestSnapshotOfObjectsWithoutUID(t *testing.T) {
	services := watch.FeedSpec{Feed: vedette.Feed{Kind: vedette.Kind{Name: "Service"}},
		Resource: vedette.Resource{Kind: vedette.Kind{Name: "Service"}, Version: "v1", Plural: "services", Namespaced: true}}
	named := func(name, uid, version string) uint64 { return vedette.Digest("n", name, uid, version) }
	old := vedette.DigestWithoutName
	for _, tt := range []struct {
		name        string
		stored      []uint64
		listed      string // name/uid/version of each object
		wantSent    string
		wantDropped []uint64
	}{
		{"nothing has changed", []uint64{named("a", "", "1"), named("b", "", "1")}, "a//1 b//1", "", nil},
		{"one of two is gone", []uint64{named("a", "", "1"), named("b", "", "1")}, "b//1", "", []uint64{named("a", "", "1")}},
		{"one of two has changed", []uint64{named("a", "", "1"), named("b", "", "1")}, "a//2 b//1", "a", []uint64{named("a", "", "1")}},
		{"older server: all are sent, and none of them is dropped", []uint64{old("", "1"), old("", "1"), old("", "7")}, "a//1 b//1", "a b", []uint64{old("", "7")}},
		{"objects with uid, at any server", []uint64{named("a", "u", "1"), old("v", "1")}, "a/u/1 b/v/1", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newRecordWriter(t)
			x := &index{digests: tt.stored}
			x.prepare()
			s.snapshots[services.Feed] = x
			var sent []string
			for object := range strings.FieldsSeq(tt.listed) {
				part := strings.Split(object, "/")
				raw := fmt.Sprintf(`{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"n","name":%q,"uid":%q,"resourceVersion":%q}}`, part[0], part[1], part[2])
				before := s.box.Used()
				if err := s.Put(t.Context(), watch.Event{Type: watch.Item, FeedSpec: services, Raw: []byte(raw)}); err != nil {
					t.Fatal(err)
				}
				if s.box.Used() > before {
					sent = append(sent, part[0])
				}
			}
			if got := strings.Join(sent, " "); got != tt.wantSent {
				t.Errorf("got %q sent, want %q", got, tt.wantSent)
			}
			var dropped []uint64
			if err := x.forEachUnseen(10, func(digests []uint64) error { dropped = append(dropped, digests...); return nil }); err != nil {
				t.Fatal(err)
			}
			slices.Sort(dropped)
			if !slices.Equal(dropped, tt.wantDropped) {
				t.Errorf("got %d digests dropped, want %d", len(dropped), len(tt.wantDropped))
			}
		})
	}
}
