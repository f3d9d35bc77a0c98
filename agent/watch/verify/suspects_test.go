package verify

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDriftInABusyFeedIsExamined checks that the bucket of an object that differs is examined after a few
// comparisons, although a third of all buckets differ in each of them because their objects change.
func TestDriftInABusyFeedIsExamined(t *testing.T) {
	const bits, drifted = MaxBits, 77
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s, comparisons := Suspects{}, 0
		for found := false; !found; {
			differing := []uint32{drifted}
			for bucket := range uint32(1 << bits) {
				if rng.IntN(3) == 0 {
					differing = append(differing, bucket)
				}
			}
			suspects := s.Compare(bits, differing)
			comparisons++
			if !slices.Contains(suspects, drifted) {
				t.Fatalf("seed %d: the bucket is not suspect after %d comparisons", seed, comparisons)
			}
			found = slices.Contains(NewExamination(bits, 150_000, suspects).Request().Buckets, drifted)
		}
		if comparisons > 7 {
			t.Errorf("seed %d: examined after %d comparisons, want 7 at most", seed, comparisons)
		}
	}
}

func TestOnlyLastingDifferencesStaySuspect(t *testing.T) {
	s := &Suspects{}
	if got := s.Compare(3, []uint32{5, 1, 1, 7}); !slices.Equal(got, []uint32{1, 5, 7}) {
		t.Errorf("first comparison: got %v", got)
	}
	if got := s.Compare(3, []uint32{0, 1, 7}); !slices.Equal(got, []uint32{1, 7}) {
		t.Errorf("second comparison: got %v, want those that differed in both", got)
	}
	if s.Examined([]uint32{1}) {
		t.Error("done, although a bucket was not examined")
	}
	if got := s.Compare(3, []uint32{1, 7}); !slices.Equal(got, []uint32{7}) {
		t.Errorf("got %v, want what was not examined", got)
	}
	if got := s.Compare(4, []uint32{1}); !slices.Equal(got, []uint32{1}) {
		t.Errorf("with other buckets: got %v, want all that differ", got)
	}
	if !s.Examined([]uint32{1}) || len(s.Compare(4, []uint32{1, 2})) != 0 {
		t.Error("not done, although all buckets were equal once or were examined")
	}
}
