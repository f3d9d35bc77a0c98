package write_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// TestChangesWithoutAnAnswerArePublished commits, and the database does not answer. The second attempt changes nothing, but readers of live events must
// be told.
func TestChangesWithoutAnAnswerArePublished(t *testing.T) {
	for name, tt := range map[string]struct {
		isCommitted bool
		isLeft      bool // nobody writes the account any more
		want        []string
	}{
		"committed":                      {true, false, []string{"added pod-1@2", "modified pod-0@2", "deleted pod-2@"}},
		"not committed":                  {false, false, nil},
		"committed, and left to others":  {true, true, []string{"added pod-1@2", "modified pod-0@2", "deleted pod-2@"}},
		"not committed, and left behind": {false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var published []string
			f.Store.OnSettled(func(changes []commit.Change) { published = append(published, describe(changes)...) })
			f.CommitPods(1, storetest.PodAt(0, 1), storetest.PodAt(2, 1))
			b := commit.Batch{Account: "prod", Term: f.Term, Upserts: []vedette.Object{storetest.PodAt(0, 2), storetest.PodAt(1, 2)},
				Deletes: []commit.Deletion{{Key: storetest.PodAt(2, 1).Key, Version: "2"}}}
			if err := f.Store.CommitWithoutAnswer(t.Context(), b, tt.isCommitted); vedette.KindOf(err) != vedette.Unavailable {
				t.Fatalf("got %v", err)
			}
			if len(published) > 0 {
				t.Errorf("before the transaction has ended: got %q", published)
			}
			if tt.isLeft {
				f.Store.SettleOld(t.Context())
			}
			changes, err := f.Store.Commit(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if isAgain := len(changes) > 0; isAgain == tt.isCommitted {
				t.Errorf("the second attempt changes %q", describe(changes))
			}
			settled := len(published)
			f.Store.SettleOld(t.Context())
			if len(published) != settled {
				t.Errorf("got %q in the end, want nothing more than %q", published, published[:settled])
			}
			if slices.Sort(published); !slices.Equal(published, slices.Sorted(slices.Values(tt.want))) {
				t.Errorf("got %q, want %q", published, tt.want)
			}
		})
	}
}

// TestOnlyStoredChangesAreSettled writes an object again before anybody asks what became of its first change.
func TestOnlyStoredChangesAreSettled(t *testing.T) {
	f := newFixture(t)
	var published []string
	f.Store.OnSettled(func(changes []commit.Change) { published = append(published, describe(changes)...) })
	refused := commit.Batch{Account: "prod", Term: f.Term - 1, Upserts: []vedette.Object{storetest.PodAt(0, 2)}}
	if _, err := f.Store.Commit(t.Context(), refused); err == nil {
		t.Fatal("got no error for an old term")
	}
	b := commit.Batch{Account: "prod", Term: f.Term, Upserts: []vedette.Object{storetest.PodAt(0, 3)}}
	if err := f.Store.CommitWithoutAnswer(t.Context(), b, false); err == nil {
		t.Fatal("got no error without an answer")
	}
	f.CommitPods(4, storetest.PodAt(0, 4)) // settles first
	f.Store.SettleOld(t.Context())
	if len(published) > 0 {
		t.Errorf("got %q, want nothing: another commit has published it", published)
	}
}

func describe(changes []commit.Change) (texts []string) {
	for _, c := range changes {
		texts = append(texts, fmt.Sprintf("%s %s@%s", c.Type, c.Key.Name, c.Version))
	}
	return texts
}
