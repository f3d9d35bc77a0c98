package read_test

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// TestChangesOfObjectsAreRecorded checks what commits, removals and accounts record.
func TestChangesOfObjectsAreRecorded(t *testing.T) {
	f := newFixture(t)
	pod := func(name, application string) vedette.Object {
		return vedette.Object{Key: vedette.Key{Kind: storetest.PodFeed.Kind, Namespace: "shop", Name: name}, UID: "uid-" + name, ResourceVersion: application,
			Annotations: map[string]string{"moniker.spinnaker.io/application": application}, Body: []byte("{}")}
	}
	store := func(b commit.Batch) {
		b.Account, b.Term = "prod", f.Term
		_, err := f.Commit(t.Context(), b)
		f.Must(err)
	}
	first := f.ChangeMark()
	for _, tt := range []struct {
		what string
		do   func()
		want []string
		ok   bool
	}{
		{"nothing", func() {}, nil, true},
		{"an insert and an update", func() {
			store(commit.Batch{Upserts: []vedette.Object{pod("a", "one"), pod("b", "one")}})
			store(commit.Batch{Upserts: []vedette.Object{pod("a", "two")}})
		}, []string{"a one", "b one", "a two", "a one"}, true},
		{"the same again", func() { store(commit.Batch{Upserts: []vedette.Object{pod("a", "two")}}) }, nil, true},
		{"a deletion", func() { store(commit.Batch{Deletes: []commit.Deletion{{Key: pod("b", "").Key}}}) }, []string{"b one"}, true},
		{"a withdrawn kind", func() {
			_, err := f.Declare(t.Context(), "prod", f.Term, nil, nil)
			f.Must(err)
		}, []string{"a two"}, true},
		{"the account", func() { f.Must(f.RemoveAccount(t.Context(), "prod")) }, nil, false},
	} {
		mark := f.ChangeMark()
		tt.do()
		var got []string
		now, ok := f.ChangedObjects(mark, func(o read.ObjectRef) {
			if o.Account != "prod" || o.Kind != storetest.PodFeed.Kind || o.Namespace != "shop" {
				t.Errorf("%s: got %+v, want a Pod", tt.what, o)
			}
			got = append(got, o.Name+" "+o.Application)
		})
		if !slices.Equal(got, tt.want) || ok != tt.ok || now != f.ChangeMark() {
			t.Errorf("%s: got %v and %v, want %v and %v", tt.what, got, ok, tt.want, tt.ok)
		}
	}
	if _, ok := f.ChangedObjects(first, func(read.ObjectRef) {}); ok {
		t.Error("got all changes since the beginning, want some to be forgotten")
	}
}
