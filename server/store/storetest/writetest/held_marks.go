package writetest

import (
	"errors"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// bookmarks is an account whose Pods are live as of mark 5, and whose Services have no mark.
type bookmarks struct {
	*storetest.Writer
	t *testing.T
}

func newBookmarks(t *testing.T, s *store.Store) *bookmarks {
	t.Helper()
	b := &bookmarks{storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services)), t}
	b.commitMark("5")
	return b
}

// commitMark commits a mark with a state.
func (b *bookmarks) commitMark(mark vedette.Mark) {
	b.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
}

func (b *bookmarks) bookmark(kind vedette.Kind, mark vedette.Mark) {
	b.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(kind), Mark: &mark, IsRemembered: true}}})
}

func (b *bookmarks) store() {
	b.t.Helper()
	if err := b.Store.StoreMarks(b.t.Context(), b.Account); err != nil {
		b.t.Error(err)
	}
}

// want expects the stored mark of the Pods.
func (b *bookmarks) want(when string, mark vedette.Mark) {
	b.t.Helper()
	if got := storetest.FeedStatus(b.t, b.Store, b.Account, storetest.FeedOf(storetest.Pods)).Mark; got != mark {
		b.t.Errorf("%s: the stored mark is %q, want %q", when, got, mark)
	}
}

// HeldMarks are tests of bookmarks that are kept in memory.
var HeldMarks = map[string]func(*testing.T, *store.Store){
	"a bookmark is stored when it is needed": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "7")
		b.want("held", "5")
		b.store()
		b.want("stored", "7")
		b.bookmark(storetest.Pods, "8")
		b.bookmark(storetest.Pods, "9")
		b.want("held after one that is stored", "7")
		b.store()
		b.want("the last one", "9")
		b.store()
		b.want("stored twice", "9")
	},
	"a bookmark is stored while the account has objects that only operations have reported": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		w := podWriter{b.Writer}
		w.writePodThrough("web", 10)
		b.bookmark(storetest.Pods, "7")
		b.want("the feed may report what was before", "7")
		b.bookmark(storetest.Pods, "12")
		b.want("the feed reports nothing older any more", "12")
		b.bookmark(storetest.Pods, "13")
		b.want("held", "12")
	},
	"a later change replaces a bookmark": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "7")
		b.commitMark("8")
		b.store()
		b.want("after a change", "8")
		b.bookmark(storetest.Pods, "9")
		b.store()
		b.want("after the next bookmark", "9")
	},
	"a bookmark does not survive the beginning of a snapshot": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "7")
		storetest.BeginSnapshot(t, b.Writer)
		b.store()
		b.want("while a snapshot is read", "")
		b.commitMark("6")
		b.store()
		b.want("after the snapshot", "6")
	},
	"a bookmark does not survive that a feed is invalidated": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "7")
		if err := s.InvalidateFeed(t.Context(), b.Account, b.Term, storetest.FeedOf(storetest.Pods)); err != nil {
			t.Fatal(err)
		}
		b.store()
		b.want("after the feed was invalidated", "")
	},
	"bookmarks of a late writer are not stored": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "7")
		storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "b", Server: "server-2", Account: &vedette.Account{Name: "prod"}})
		b.store()
		b.want("after another server has acquired the account", "5")
		mark := vedette.Mark("8")
		_, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: b.Term, Feeds: []commit.FeedUpdate{
			{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, IsRemembered: true}}})
		if !errors.Is(err, registry.ErrTerm) {
			t.Errorf("a bookmark in a term that has ended: got %v, want %v", err, registry.ErrTerm)
		}
	},
	"a snapshot of an earlier state is noticed by a bookmark that is held": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "9")
		storetest.BeginSnapshot(t, b.Writer)
		mark := vedette.Mark("7")
		_, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: b.Term, Feeds: []commit.FeedUpdate{
			{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, SnapshotMark: mark, State: vedette.FeedLive}}})
		if !errors.Is(err, commit.ErrRewound) {
			t.Errorf("a snapshot as of 7 after a bookmark of 9: got %v, want %v", err, commit.ErrRewound)
		}
	},
	"a bookmark of a feed without a mark is stored as before": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Services, "7")
		if got := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Services)).Mark; got != "7" {
			t.Errorf("the stored mark is %q, want 7", got)
		}
	},
	"a bookmark of a feed that is not declared is rejected": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "7")
		mark := vedette.Mark("7")
		_, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: b.Term, Feeds: []commit.FeedUpdate{
			{Feed: storetest.FeedOf(storetest.Roles), Mark: &mark, IsRemembered: true}}})
		if !errors.Is(err, commit.ErrNoFeed) {
			t.Errorf("got %v, want %v", err, commit.ErrNoFeed)
		}
	},
	"another declaration keeps bookmarks": func(t *testing.T, s *store.Store) {
		b := newBookmarks(t, s)
		b.bookmark(storetest.Pods, "7")
		b.Declare(storetest.FeedOf(storetest.Pods))
		b.want("after a feed was withdrawn", "7")
	},
	"bookmarks of many accounts are stored at once": func(t *testing.T, s *store.Store) {
		f := newFleet(t, s)
		mark := vedette.Mark("7")
		f.each(func(_ int, w *storetest.Writer) {
			w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, IsRemembered: true},
				{Feed: storetest.FeedOf(storetest.Services), Mark: &mark, IsRemembered: true}}})
		})
		f.each(func(_ int, w *storetest.Writer) {
			if err := s.StoreMarks(t.Context(), w.Account); err != nil {
				t.Error(err)
			}
		})
		for _, w := range f.writers {
			for _, kind := range []vedette.Kind{storetest.Pods, storetest.Services} {
				if got := storetest.FeedStatus(t, s, w.Account, storetest.FeedOf(kind)).Mark; got != mark {
					t.Errorf("%s of %s: the stored mark is %q, want 7", kind.Name, w.Account, got)
				}
			}
		}
	},
}
