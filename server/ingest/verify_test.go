package ingest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
)

func digestOf(name, version string) uint64 {
	return vedette.Digest("default", name, "uid-"+name, version)
}

func verifyStep(term vedette.Term, v Verify) Step {
	return Step{Type: VerifyFeed, Account: "prod", Term: term, Feed: pods, Size: 100, Verify: &v}
}

// TestVerifyComparesWhatIsStoredBefore checks that an answer includes all changes before the question,
// although they arrive together.
func TestVerifyComparesWhatIsStoredBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, a, term := newTestPipeline(t, passThrough)
		defer st.Close()
		equal := digestOf("a", "2") + digestOf("b", "1")
		putAll(t, p, upsert(term, "a", 1), upsert(term, "b", 1), upsert(term, "a", 2),
			verifyStep(term, Verify{ID: 1, Sums: []uint64{equal}}),
			verifyStep(term, Verify{ID: 2, Sums: []uint64{equal + 1}}),
			upsert(term, "c", 3),
			verifyStep(term, Verify{ID: 3, Buckets: []uint32{0}, Named: []uint64{digestOf("b", "1"), 5}}))
		run(t, p)
		got := a.current().verified
		if len(got) != 3 {
			t.Fatalf("got %d answers, want 3", len(got))
		}
		if len(got[0].Buckets) != 0 || !slices.Equal(got[1].Buckets, []uint32{0}) {
			t.Errorf("got differing buckets %v for equal sums and %v for others, want none and 0", got[0].Buckets, got[1].Buckets)
		}
		var digests []uint64
		for _, o := range got[2].Objects {
			digests = append(digests, o.Digest)
		}
		slices.Sort(digests)
		want := []uint64{digestOf("a", "2"), digestOf("b", "1"), digestOf("c", "3")}
		slices.Sort(want)
		if !slices.Equal(digests, want) || !slices.Equal(got[2].Names, []string{"default/b"}) {
			t.Errorf("got objects %x and names %v, want %x and default/b", digests, got[2].Names, want)
		}
		if acked := a.current().acked; acked != 7 {
			t.Errorf("got %d records acknowledged, want 7", acked)
		}
	})
}

// TestInvalidQuestionsHarmNothingElse checks that invalid questions are refused, and harm nothing else.
func TestInvalidQuestionsHarmNothingElse(t *testing.T) {
	for name, v := range map[string]Verify{
		"too many bits":           {Bits: 40, Sums: make([]uint64, 8)},
		"negative bits":           {Bits: -1},
		"fewer sums than buckets": {Bits: 4, Sums: make([]uint64, 3)},
		"too many buckets":        {Bits: 12, Buckets: make([]uint32, 5000)},
		"too many names":          {Bits: 12, Named: make([]uint64, 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, p, a, term := newTestPipeline(t, passThrough)
				defer st.Close()
				putAll(t, p, verifyStep(term, v), upsert(term, "a", 1))
				run(t, p)
				if got := a.current(); len(got.verified) != 1 || got.verified[0].Refusal == "" || got.revoked != nil {
					t.Errorf("got %+v, want a refusal", got)
				}
				if stored := storedVersions(t, st); stored["a"] != "1" {
					t.Errorf("got %v stored, want the change after the question", stored)
				}
			})
		})
	}
}

// slowStore takes long to scan a feed.
type slowStore struct {
	Store
	scans int
}

func (s *slowStore) ScanObjects(context.Context, vedette.AccountName, vedette.Feed, func([]commit.StoredObject) error) error {
	s.scans++
	time.Sleep(time.Second)
	return nil
}

// TestVerificationTimeIsBounded checks that an agent which asks all the time gets a small share of the
// database's time, also if it connects anew each minute.
func TestVerificationTimeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStore{}
		st, first, a, term := newTestPipeline(t, func(st *store.Store) Store { slow.Store = st; return slow })
		defer st.Close()
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			p := first.ingest.NewPipeline(first.source, a, first.log)
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			for ctx.Err() == nil {
				if err := p.Put(ctx, verifyStep(term, Verify{Sums: []uint64{0}})); err != nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		if most := int(verifyBurst/time.Second) + 10*60/verifyShare + 1; slow.scans > most || slow.scans < 10 {
			t.Errorf("got %d scans of 1 s in 10 minutes, want at most %d", slow.scans, most)
		}
	})
}

// hungStore never ends the scan of a feed.
type hungStore struct{ Store }

func (s *hungStore) ScanObjects(ctx context.Context, _ vedette.AccountName, _ vedette.Feed, _ func([]commit.StoredObject) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestHungVerificationIsRefused checks that a database that does not answer a verification costs the
// account some seconds, and neither its term nor the agent's session.
func TestHungVerificationIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, a, term := newTestPipeline(t, func(st *store.Store) Store { return &hungStore{st} })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, verifyStep(term, Verify{Sums: []uint64{0}}), upsert(term, "a", 1))
		time.Sleep(2 * maxScanTime)
		got := a.current()
		if len(got.verified) != 1 || got.verified[0].Refusal == "" || got.revoked != nil || got.acked != 2 {
			t.Errorf("got %+v, want a refusal and two stored records", got)
		}
		if stored := storedVersions(t, st); stored["a"] != "1" {
			t.Errorf("got %v stored, want the change after the question", stored)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestDriftIsCounted checks what a report of an agent changes, and that its numbers are bounded.
func TestDriftIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, _, term := newTestPipeline(t, passThrough)
		defer st.Close()
		report := func(v Verified) Step {
			return Step{Type: FeedVerified, Account: "prod", Term: term, Feed: pods, Size: 10, Verified: &v}
		}
		putAll(t, p, report(Verified{Missing: 2, LeftOver: 3, Changed: 4, Examples: []string{"default/a"}}), upsert(term, "a", 1))
		run(t, p)
		if got, want := p.ingest.Drift(), (Drift{Missing: 2, LeftOver: 3, Changed: 4}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		feeds, err := st.Feeds(context.Background(), "prod")
		if err != nil || len(feeds) != 1 || feeds[0].Drift != 9 || feeds[0].Verified.IsZero() {
			t.Errorf("got %+v, %v, want a verified feed with 9 drifted objects", feeds, err)
		}
		huge := Verified{Missing: 1 << 62, LeftOver: -5}
		if huge.total() != maxDrift {
			t.Errorf("got %d objects of a report with %+v, want %d", huge.total(), huge, maxDrift)
		}
	})
}

// TestVerificationsOfOneSource checks that a source with many agents leaves verifications to others.
func TestVerificationsOfOneSource(t *testing.T) {
	in := New(Config{}, nil, NewHub(), nil)
	granted := 0
	for range 2 * maxVerifications {
		if in.verifications.TryAcquire("greedy", 1) != nil {
			granted++
		}
	}
	if granted != maxVerifications/2 || in.verifications.TryAcquire("honest", 1) == nil {
		t.Errorf("got %d verifications of one source, want half of %d, and one of another source", granted, maxVerifications)
	}
}
