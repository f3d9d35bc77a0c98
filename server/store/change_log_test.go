package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
)

func named(from, n int) []changedObject {
	var list []changedObject
	for i := from; i < from+n; i++ {
		list = append(list, changedObject{rowKey: rowKey{name: fmt.Sprint(i)}})
	}
	return list
}

// TestChangeLog compares the log with a list of all changes, over several rounds of the ring.
func TestChangeLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // not secret
	var log changeLog
	type reader struct {
		mark  uint64
		seen  int // number of changes before the mark
		since int // number of times that the log had been emptied
	}
	readers := []reader{{}}
	var all []changedObject
	added, emptied := 0, 0
	for range 100 {
		switch n := random.IntN(10); n {
		case 0:
			log.forget()
			emptied++
		case 1:
			readers = append(readers, reader{log.now(), added, emptied})
		default:
			n := random.IntN(changeLogSize / 8)
			all = append(all, named(added, n)...)
			log.note(all[added:])
			added += n
		}
		for _, r := range readers {
			got, wrong := 0, 0
			now, ok := log.since(r.mark, func(c changedObject) {
				if at := r.seen + got; at >= len(all) || c != all[at] {
					wrong++
				}
				got++
			})
			known := r.since == emptied && added-r.seen <= changeLogSize
			if now != log.now() || ok != known || known && (got != added-r.seen || wrong > 0) {
				t.Fatalf("got %d changes, %d of them wrong, known: %v, want %d and %v", got, wrong, ok, added-r.seen, known)
			}
		}
	}
}

// TestChangedObjects checks what commits, removals and accounts record.
func TestChangedObjects(t *testing.T) {
	w := newFixture(t)
	pod := func(name, application string) vedette.Object {
		return vedette.Object{Key: vedette.Key{Kind: podFeed.Kind, Namespace: "shop", Name: name}, UID: "uid-" + name, ResourceVersion: application,
			Annotations: map[string]string{"moniker.spinnaker.io/application": application}, Body: []byte("{}")}
	}
	commit := func(b Batch) {
		b.Account, b.Term = "prod", w.term
		_, err := w.Commit(t.Context(), b)
		w.must(err)
	}
	first := w.ChangeMark()
	for _, tt := range []struct {
		what string
		do   func()
		want []string
		ok   bool
	}{
		{"nothing", func() {}, nil, true},
		{"an insert and an update", func() {
			commit(Batch{Upserts: []vedette.Object{pod("a", "one"), pod("b", "one")}})
			commit(Batch{Upserts: []vedette.Object{pod("a", "two")}})
		}, []string{"a one", "b one", "a two", "a one"}, true},
		{"the same again", func() { commit(Batch{Upserts: []vedette.Object{pod("a", "two")}}) }, nil, true},
		{"a deletion", func() { commit(Batch{Deletes: []Deletion{{Key: pod("b", "").Key}}}) }, []string{"b one"}, true},
		{"a withdrawn kind", func() {
			_, err := w.Declare(t.Context(), "prod", w.term, nil, nil)
			w.must(err)
		}, []string{"a two"}, true},
		{"the account", func() { w.must(w.RemoveAccount(t.Context(), "prod")) }, nil, false},
	} {
		mark := w.ChangeMark()
		tt.do()
		var got []string
		now, ok := w.ChangedObjects(mark, func(o ObjectRef) {
			if o.Account != "prod" || o.Kind != podFeed.Kind || o.Namespace != "shop" {
				t.Errorf("%s: got %+v, want a Pod", tt.what, o)
			}
			got = append(got, o.Name+" "+o.Application)
		})
		if !slices.Equal(got, tt.want) || ok != tt.ok || now != w.ChangeMark() {
			t.Errorf("%s: got %v and %v, want %v and %v", tt.what, got, ok, tt.want, tt.ok)
		}
	}
	if _, ok := w.ChangedObjects(first, func(ObjectRef) {}); ok {
		t.Error("got all changes since the beginning, want some to be forgotten")
	}
}
