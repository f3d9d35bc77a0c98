package verify

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
)

// history is what happened in a cluster: its state after each change. The resourceVersion of a state is
// its index.
type history struct{ states []map[string]int }

func newHistory(rng *rand.Rand, changes int) *history {
	h := &history{states: []map[string]int{{}}}
	for version := 1; version <= changes; version++ {
		next := map[string]int{}
		maps.Copy(next, h.states[version-1])
		if name := fmt.Sprint("o", rng.IntN(12)); rng.IntN(3) == 0 {
			delete(next, name)
		} else {
			next[name] = version
		}
		h.states = append(h.states, next)
	}
	return h
}

func digestOf(name string, version int) uint64 {
	return vedette.Digest("", name, "uid-"+name, fmt.Sprint(version))
}

// examine runs an examination with lists of the versions l1 and l2, and answers of a server that is at m1
// and m2 and differs by what damage does.
func (h *history) examine(t *testing.T, versions []int, damage func(state map[string]int)) Drift {
	t.Helper()
	x := NewExamination(0, 40, []uint32{0})
	var names []string
	for round := range 2 {
		for name, v := range h.states[versions[2*round]] {
			if err := x.Add(digestOf(name, v), "", name); err != nil {
				t.Fatal(err)
			}
		}
		stored := map[string]int{}
		maps.Copy(stored, h.states[versions[2*round+1]])
		damage(stored)
		request := x.Request()
		var objects []Object
		names = nil
		for name, v := range stored {
			objects = append(objects, Object{digestOf(name, v), vedette.HashName("", name)})
			if slices.Contains(request.Named, digestOf(name, v)) {
				names = append(names, name)
			}
		}
		more, err := x.Compare(objects)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return Drift{}
		}
	}
	return x.Drift(names)
}

// TestChangesAreNotDrift checks all orders that the rounds of an examination may have, with objects that
// change all the time.
func TestChangesAreNotDrift(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := newHistory(rng, 40)
		versions := make([]int, 4)
		for i := range versions {
			versions[i] = rng.IntN(len(h.states))
		}
		slices.Sort(versions)
		if rng.IntN(2) == 0 {
			versions[0] = rng.IntN(versions[1] + 1) // the first list may be from a cache that is behind
		}
		if d := h.examine(t, versions, func(map[string]int) {}); !d.IsEmpty() {
			t.Fatalf("seed %d: got drift %+v of %v at versions %v, want none", seed, d.Count(), d.Examples, versions)
		}
	}
}

// TestDriftIsFound checks that what a server does not learn, or keeps, is found, counted and named.
func TestDriftIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		damage   func(state map[string]int)
		want     Count
		examples []string
	}{
		"an object is missing":      {func(s map[string]int) { delete(s, "quiet") }, Count{Missing: 1}, []string{"quiet"}},
		"an object is left over":    {func(s map[string]int) { s["ghost"] = 3 }, Count{LeftOver: 1}, []string{"ghost"}},
		"an object is out of date":  {func(s map[string]int) { s["quiet"] = 1000 }, Count{Changed: 1}, []string{"quiet"}},
		"a ghost and a lost object": {func(s map[string]int) { delete(s, "quiet"); s["ghost"] = 3 }, Count{Missing: 1, LeftOver: 1}, []string{"ghost", "quiet"}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				rng := rand.New(rand.NewPCG(seed, 2))
				h := newHistory(rng, 40)
				for _, state := range h.states {
					state["quiet"] = 1
				}
				versions := []int{5, 5 + rng.IntN(10), 20, 20 + rng.IntN(20)}
				d := h.examine(t, versions, tt.damage)
				if d.Count() != tt.want || !slices.Equal(d.Examples, tt.examples) {
					t.Fatalf("seed %d: got %+v of %v, want %+v of %v", seed, d.Count(), d.Examples, tt.want, tt.examples)
				}
			}
		})
	}
}

// TestUnstorableObjectsAreNotDrift checks what remains different after a feed was read anew.
func TestUnstorableObjectsAreNotDrift(t *testing.T) {
	before := Drift{missing: map[uint64]uint64{1: 10, 2: 20}, leftOver: map[uint64]uint64{3: 30}}
	found := Drift{missing: map[uint64]uint64{2: 20, 4: 40}}
	rest, unstorable := found.Without(&before)
	if rest.Count() != (Count{Missing: 1}) || !slices.Equal(unstorable, []uint64{2}) {
		t.Errorf("got %+v and %v, want one missing object and the digest 2", rest.Count(), unstorable)
	}
	before.Remove(unstorable)
	if want := (Count{Missing: 1, LeftOver: 1}); before.Count() != want {
		t.Errorf("got %+v to report, want %+v", before.Count(), want)
	}
}

func TestExaminationIsBounded(t *testing.T) {
	all := make([]uint32, 1<<MaxBits)
	for i := range all {
		all[i] = uint32(i)
	}
	for n, want := range map[int]int{0: maxBuckets, 200_000: maxBuckets, 1_000_000: 8, 100_000_000: 1} {
		x := NewExamination(MaxBits, n, all)
		if got := x.Request().Buckets; len(got) != want || !slices.IsSorted(got) || CanExamine(MaxBits, n, want+1) || !CanExamine(MaxBits, n, want) {
			t.Errorf("of a feed with %d objects: got %d buckets, want %d", n, len(got), want)
		}
	}
	x := NewExamination(0, 40, []uint32{0})
	var err error
	for i := 0; err == nil && i < 2*maxObjects; i++ {
		err = x.Add(uint64(i), "", "")
	}
	if !errors.Is(err, ErrTooManyObjects) || len(x.listed) != maxObjects {
		t.Errorf("got %d objects and error %v, want %d and %v", len(x.listed), err, maxObjects, ErrTooManyObjects)
	}
	if _, err := x.Compare(make([]Object, maxObjects+1)); !errors.Is(err, ErrTooManyObjects) {
		t.Errorf("got error %v for an answer with too many objects, want %v", err, ErrTooManyObjects)
	}
}

// TestOnlyTheChangedBucketDiffers checks that buckets have as many objects as intended, and that only the bucket of a
// different object differs.
func TestOnlyTheChangedBucketDiffers(t *testing.T) {
	for n, bits := range map[int]int{0: 0, 1: 0, 16: 0, 17: 1, 1000: 6, 70_000: 12} {
		a, b := &Sums{}, &Sums{}
		var changed uint64
		for i := range n {
			digest := digestOf("o", i)
			a.Add(digest)
			if i == n/2 {
				changed, digest = digest, digest^1
			}
			b.Add(digest)
		}
		r, s := a.Request(), b.Request()
		if r.Bits != bits || len(r.Sums) != 1<<bits {
			t.Errorf("%d objects: got %d bits and %d sums, want %d bits", n, r.Bits, len(r.Sums), bits)
		}
		for i := range r.Sums {
			if differs := r.Sums[i] != s.Sums[i]; differs != (n > 0 && uint64(i) == vedette.Bucket(changed, bits)) {
				t.Errorf("%d objects: got difference %v in bucket %d of the changed object's digest %x", n, differs, i, changed)
			}
		}
	}
}
