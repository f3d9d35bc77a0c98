package storetest

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

// Retire releases an account and retires it as an orphan.
func Retire(t *testing.T, w *Writer) {
	t.Helper()
	Release(t, w)
	if retired, err := w.Store.RetireOrphan(t.Context(), w.Account, w.Term); err != nil || !retired {
		t.Fatalf("got retired %v, %v, want true", retired, err)
	}
}

// AcquireAs acquires an account with a claim.
func AcquireAs(t *testing.T, s *store.Store, h registry.CacherClaim) {
	t.Helper()
	if _, err := s.Acquire(t.Context(), h.Account.Name, h); err != nil {
		t.Fatal(err)
	}
}

// Release ends the term of the writer.
func Release(t *testing.T, w *Writer) {
	t.Helper()
	if err := w.Store.Release(t.Context(), w.Account, w.Term, "server-1"); err != nil {
		t.Fatal(err)
	}
}

// BeginSnapshot begins a snapshot of the Pods.
func BeginSnapshot(t *testing.T, w *Writer) {
	t.Helper()
	if err := w.Store.BeginSnapshot(t.Context(), w.Account, w.Term, FeedOf(Pods)); err != nil {
		t.Fatal(err)
	}
}

// FeedStatus reads the state of a feed.
func FeedStatus(t *testing.T, s *store.Store, account vedette.AccountName, feed vedette.Feed) read.FeedStatus {
	t.Helper()
	feeds, err := s.Marks(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range feeds {
		if f.Feed == feed {
			return f
		}
	}
	t.Fatalf("account %s: got feeds %v, want %s among them", account, feeds, feed)
	return read.FeedStatus{}
}

// Namespaces are the kind of Namespaces.
var Namespaces = vedette.Kind{Name: "Namespace"}
