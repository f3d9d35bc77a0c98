package api

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/vedette-io/vedette"
)

func setRef(n int) objectRef {
	return objectRef{"prod", vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "shop", Name: fmt.Sprint("web-", n)}}
}

// TestObjectSetPaysForItsMemory checks that 150,000 objects take what the set pays for, and that a set that is
// refused memory does not grow.
func TestObjectSetPaysForItsMemory(t *testing.T) {
	const objects = 150_000
	paid := int64(0)
	set := &objectSet{pay: func(bytes int64) error { paid += bytes; return nil }}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range objects {
		if err := set.add(setRef(i)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if held > paid*3/2 || paid > 5<<20 {
		t.Errorf("got %d bytes held and %d paid for, want at most 5 MiB, and about the same", held, paid)
	}
	if !set.contains(setRef(1)) || set.contains(setRef(objects)) || !set.remove(setRef(1)) || set.remove(setRef(1)) {
		t.Error("the set has other objects than were added")
	}
	refused := vedette.Errorf(vedette.Unavailable, "no memory")
	set.pay = func(int64) error { return refused }
	for i := range 2 * digestsPerPay {
		if err := set.add(setRef(objects + i)); err != nil {
			return
		}
	}
	t.Error("the set grew without memory")
}

// TestDigestsCannotBePredicted checks that two sets have other digests: nobody can make names with the same one.
func TestDigestsCannotBePredicted(t *testing.T) {
	var a, b objectSet
	for _, set := range []*objectSet{&a, &b} {
		if set.contains(setRef(1)) || set.remove(setRef(1)) {
			t.Error("an empty set has an object")
		}
		if err := set.add(setRef(1)); err != nil {
			t.Fatal(err)
		}
	}
	if a.digest(setRef(1)) == b.digest(setRef(1)) {
		t.Error("two sets have the same digest of an object")
	}
}
