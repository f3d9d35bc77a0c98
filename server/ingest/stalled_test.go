package ingest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// failingStore is a store that fails, until it is fixed, on each batch that contains an object
// called bad.
type failingStore struct {
	*store.Store
	err      error
	repaired atomic.Bool
}

func (w *failingStore) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	for _, o := range b.Upserts {
		if o.Name == "bad" && !w.repaired.Load() {
			return nil, w.err
		}
	}
	return w.Store.Commit(ctx, b)
}

// TestOnlyUnstorableDataIsOmitted checks that an object is omitted only for an error about its
// data. After any other error it is retried, and the mark does not advance.
func TestOnlyUnstorableDataIsOmitted(t *testing.T) {
	for _, tt := range []struct {
		err    error
		isData bool
	}{
		{fmt.Errorf("commit: %w", sqldb.ErrData), true},
		{context.DeadlineExceeded, false},
		{fmt.Errorf("upsert 3 rows: %w", sql.ErrTxDone), false},
		{driver.ErrBadConn, false},
		{io.ErrUnexpectedEOF, false},
		{errors.New("an unknown error"), false},
		{vedette.Errorf(vedette.Unavailable, "the database is unavailable"), false},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := &failingStore{err: tt.err}
				st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { failing.Store = st; return failing })
				defer st.Close()
				putAll(t, p, upsert(term, "good", 1), upsert(term, "bad", 2), upsert(term, "fine", 3))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- p.Run(ctx) }()
				time.Sleep(time.Minute) // bubble time
				synctest.Wait()
				if tt.isData {
					if got := storedVersions(t, st); len(got) != 2 || responses.current().acked != 3 || feedMark(t, st) != "3" {
						t.Errorf("got %v stored, %d acknowledged, mark %s, want 2, 3 and 3", got, responses.current().acked, feedMark(t, st))
					}
				} else {
					if responses.current().acked != 0 || feedMark(t, st) != "" || responses.current().revoked != nil || p.ingest.Omitted() != 0 {
						t.Errorf("got %+v, mark %q, %d omitted, want all to wait", responses.current(), feedMark(t, st), p.ingest.Omitted())
					}
					if responses.current().stalled == nil || vedette.KindOf(responses.current().stalled) != vedette.Unavailable {
						t.Errorf("got reason %v for the wait", responses.current().stalled)
					}
				}
				failing.repaired.Store(true)
				time.Sleep(time.Minute) // bubble time
				synctest.Wait()
				if got := storedVersions(t, st); !tt.isData && (len(got) != 3 || responses.current().acked != 3 || feedMark(t, st) != "3" || responses.current().stalled != nil) {
					t.Errorf("after the database was fixed: got %v stored, %+v, mark %s", got, responses.current(), feedMark(t, st))
				}
				cancel()
				<-done
			})
		})
	}
}

func feedMark(t *testing.T, st *store.Store) vedette.Mark { return feedRow(t, st).Mark }

func feedRow(t *testing.T, st *store.Store) read.FeedStatus {
	t.Helper()
	feeds, err := st.Feeds(context.Background(), "prod")
	if err != nil || len(feeds) != 1 {
		t.Fatalf("got feeds %v, error %v", feeds, err)
	}
	return feeds[0]
}

// TestFeedMessageNamesOmittedObjects checks the message of a feed while an object cannot be stored,
// and afterwards.
func TestFeedMessageNamesOmittedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &failingStore{err: fmt.Errorf("%w: value too long", sqldb.ErrData)}
		st, p, _, term := newTestPipeline(t, func(st *store.Store) Store { failing.Store = st; return failing })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		end := Step{Type: End, Account: "prod", Term: term, Feed: pods, Mark: "9"}
		for _, tt := range []struct {
			name string
			step Step
			want string // part of the message; "" means no message
		}{
			{"object added", upsert(term, "bad", 1), "1 object is left out because the database cannot store it: Pod default/bad: "},
			{"another object added", upsert(term, "good", 2), "Pod default/bad: " + sqldb.ErrData.Error() + ": value too long"},
			{"snapshot ended", end, "Pod default/bad"},
			{"snapshot begun", Step{Type: Begin, Account: "prod", Term: term, Feed: pods}, ""},
			{"object in the snapshot", upsert(term, "bad", 3), "Pod default/bad"},
			{"second snapshot ended", end, "Pod default/bad"},
			{"object deleted", Step{Type: Delete, Account: "prod", Term: term, Feed: pods, Object: vedette.Object{Key: upsert(term, "bad", 4).Object.Key}}, ""},
			{"object added again", upsert(term, "bad", 5), "Pod default/bad"},
		} {
			putAll(t, p, tt.step)
			synctest.Wait()
			if got := feedRow(t, st).Message; !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%s: got message %q, want %q", tt.name, got, tt.want)
			}
		}
		failing.repaired.Store(true)
		putAll(t, p, upsert(term, "bad", 6))
		synctest.Wait()
		if got := feedRow(t, st); got.Message != "" || storedVersions(t, st)["bad"] != "6" {
			t.Errorf("after the object was stored: got message %q, want none", got.Message)
		}
		cancel()
		<-done
	})
}

// blockedStore is a store whose account prod cannot be written until open is called, as if its row
// were locked.
type blockedStore struct {
	*store.Store
	unblock chan struct{}
}

func (w *blockedStore) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	if b.Account == "prod" {
		select {
		case <-w.unblock:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return w.Store.Commit(ctx, b)
}

// registerOtherAccount registers a second account with a feed.
func registerOtherAccount(t *testing.T, st *store.Store) vedette.Term {
	t.Helper()
	if _, err := st.Register(context.Background(), vedette.Account{Name: "other", Cluster: vedette.Cluster{UID: "o"}}); err != nil {
		t.Fatal(err)
	}
	term, err := st.Acquire(context.Background(), "other", registry.CacherClaim{Agent: "a", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Declare(context.Background(), "other", term, []commit.DeclaredFeed{{Feed: pods}}, nil); err != nil {
		t.Fatal(err)
	}
	return term
}

func forOtherAccount(s Step, term vedette.Term, size int) Step {
	s.Account, s.Term, s.Size = "other", term, size
	return s
}

// TestStalledAccountDoesNotBlockOthers makes one account unwritable. The agent's other account must
// be stored and be fresh. Once the first account is writable again, nothing may be missing.
func TestStalledAccountDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedStore{unblock: make(chan struct{})}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { blocked.Store = st; return blocked })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "held", 1))
		synctest.Wait()
		at := time.Now()
		putAll(t, p, forOtherAccount(upsert(0, "free", 1), otherTerm, 100), upsert(term, "held", 2), Step{Type: Heartbeat, Time: at})
		time.Sleep(2 * maxTaskWait) // bubble time
		synctest.Wait()
		if got := storedVersions(t, st); got["free"] != "1" || got["held"] != "" || !responses.current().fresh.Equal(at) || responses.current().stalled == nil || responses.current().acked != 0 {
			t.Errorf("got %v stored and responses %+v, want the free account stored and only stored records acknowledged", got, responses.current())
		}
		close(blocked.unblock)
		synctest.Wait()
		if got := storedVersions(t, st); got["held"] != "2" || responses.current().acked != 3 || responses.current().stalled != nil || responses.current().revoked != nil {
			t.Errorf("after the account was unblocked: got %v stored and responses %+v", got, responses.current())
		}
		cancel()
		<-done
	})
}

// TestBlockingAccountIsRevoked makes an account unwritable while other accounts send more than an
// agent may have in flight.
func TestBlockingAccountIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedStore{unblock: make(chan struct{})}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { blocked.Store = st; return blocked })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "held", 1))
		time.Sleep(2 * maxTaskWait) // bubble time
		putAll(t, p, forOtherAccount(upsert(0, "free", 1), otherTerm, minBlockedBytes), upsert(term, "held", 2))
		time.Sleep(2 * maxStall) // bubble time
		synctest.Wait()
		if responses.current().acked != 3 || responses.current().revoked == nil || !strings.Contains(responses.current().revoked.Error(), "the account blocked other accounts of its agent") {
			t.Errorf("got responses %+v, want all acknowledged and the account revoked", responses.current())
		}
		close(blocked.unblock)
		putAll(t, p, upsert(term, "held", 3))
		synctest.Wait()
		if got := storedVersions(t, st); got["held"] != "" || feedMark(t, st) != "" {
			t.Errorf("revoked account: got %v stored at mark %s, so changes before the mark are missing", got, feedMark(t, st))
		}
		nextTerm, err := st.Acquire(ctx, "prod", registry.CacherClaim{Agent: "a", Server: "s"})
		if err != nil {
			t.Fatal(err)
		}
		putAll(t, p, upsert(nextTerm, "held", 3))
		synctest.Wait()
		if got := storedVersions(t, st); got["held"] != "3" || responses.current().acked != 5 {
			t.Errorf("in the next term: got %v stored, %d acknowledged", got, responses.current().acked)
		}
		cancel()
		<-done
	})
}

// TestBlockingAccountThatUsesTheWholeBudgetIsRevoked makes an account unwritable that has used up
// what its agent may have in flight, so that the other accounts cannot even send.
func TestBlockingAccountThatUsesTheWholeBudgetIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedStore{unblock: make(chan struct{})}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { blocked.Store = st; return blocked })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "held", 1))
		time.Sleep(2 * maxTaskWait) // bubble time
		large := upsert(term, "held", 2)
		large.Size = 512 << 10 // the least that agents send ahead of a snapshot
		putAll(t, p, forOtherAccount(upsert(0, "free", 1), otherTerm, 100), large)
		time.Sleep(2 * maxStall) // bubble time
		synctest.Wait()
		if responses.current().acked != 3 || responses.current().revoked == nil {
			t.Errorf("got responses %+v, want all acknowledged and the account revoked", responses.current())
		}
		cancel()
		<-done
	})
}

// TestUnavailableDatabaseRevokesNoAccount checks that no account is revoked if nothing at all can
// be stored, even for long.
func TestUnavailableDatabaseRevokesNoAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := &unavailableStore{times: 1000}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { unavailable.Store = st; return unavailable })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "one", 1), forOtherAccount(upsert(0, "two", 1), otherTerm, minBlockedBytes))
		time.Sleep(10 * time.Minute) // bubble time
		synctest.Wait()
		if responses.current().revoked != nil || responses.current().acked != 0 {
			t.Errorf("got responses %+v", responses.current())
		}
		cancel()
		<-done
	})
}

// TestNothingIsStoredAfterARevocation checks that nothing is stored that the agent sent before it
// received the revocation, because a later mark would skip the rejected changes.
func TestNothingIsStoredAfterARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &failingStore{err: vedette.Errorf(vedette.Invalid, "invalid data")}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { failing.Store = st; return failing })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "bad", 1))
		synctest.Wait()
		putAll(t, p, upsert(term, "good", 2))
		synctest.Wait()
		if got := storedVersions(t, st); responses.current().revoked == nil || len(got) != 0 || feedMark(t, st) != "" || responses.current().acked != 2 {
			t.Errorf("got %v stored at mark %q, responses %+v", got, feedMark(t, st), responses.current())
		}
		cancel()
		<-done
	})
}
