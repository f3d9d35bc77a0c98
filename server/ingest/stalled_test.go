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
)

// failingStore is a store whose database fails, until it is mended, over each batch that has
// an object called bad.
type failingStore struct {
	*store.Store
	err      error
	repaired atomic.Bool
}

func (w *failingStore) Commit(ctx context.Context, b store.Batch) ([]store.Change, error) {
	for _, o := range b.Upserts {
		if o.Name == "bad" && !w.repaired.Load() {
			return nil, w.err
		}
	}
	return w.Store.Commit(ctx, b)
}

// TestOnlyUnstorableDataIsOmitted holds that an object is left out for an error that names its
// data, and for no other: all else is tried until it is done, and the mark waits.
func TestOnlyUnstorableDataIsOmitted(t *testing.T) {
	for _, tt := range []struct {
		err    error
		isData bool
	}{
		{fmt.Errorf("commit: %w", store.ErrData), true},
		{context.DeadlineExceeded, false},
		{fmt.Errorf("upsert 3 rows: %w", sql.ErrTxDone), false},
		{driver.ErrBadConn, false},
		{io.ErrUnexpectedEOF, false},
		{errors.New("an error that nobody knows"), false},
		{vedette.Errorf(vedette.Unavailable, "the database is away"), false},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := &failingStore{err: tt.err}
				st, p, responses, term := newTestPipeline(t, func(st *store.Store) feedStore { failing.Store = st; return failing })
				defer st.Close()
				putAll(t, p, upsert(term, "good", 1), upsert(term, "bad", 2), upsert(term, "fine", 3))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- p.Run(ctx) }()
				time.Sleep(time.Minute) // the bubble's
				synctest.Wait()
				if tt.isData {
					if got := storedVersions(t, st); len(got) != 2 || responses.current().acked != 3 || feedMark(t, st) != "3" {
						t.Errorf("%v are stored, %d acknowledged, the mark is %s; want 2, 3 and 3", got, responses.current().acked, feedMark(t, st))
					}
				} else {
					if responses.current().acked != 0 || feedMark(t, st) != "" || responses.current().revoked != nil || p.ingest.Omitted() != 0 {
						t.Errorf("%+v, the mark is %q, %d are left out; want all to wait", responses.current(), feedMark(t, st), p.ingest.Omitted())
					}
					if responses.current().stalled == nil || vedette.KindOf(responses.current().stalled) != vedette.Unavailable {
						t.Errorf("nobody is told why the account waits, but %v", responses.current().stalled)
					}
				}
				failing.repaired.Store(true)
				time.Sleep(time.Minute) // the bubble's
				synctest.Wait()
				if got := storedVersions(t, st); !tt.isData && (len(got) != 3 || responses.current().acked != 3 || feedMark(t, st) != "3" || responses.current().stalled != nil) {
					t.Errorf("when the database is well: %v stored, %+v, the mark is %s", got, responses.current(), feedMark(t, st))
				}
				cancel()
				<-done
			})
		})
	}
}

func feedMark(t *testing.T, st *store.Store) vedette.Mark { return feedRow(t, st).Mark }

func feedRow(t *testing.T, st *store.Store) store.FeedStatus {
	t.Helper()
	feeds, err := st.Feeds(context.Background(), "prod")
	if err != nil || len(feeds) != 1 {
		t.Fatalf("feeds %v, %v", feeds, err)
	}
	return feeds[0]
}

// TestFeedMessageNamesOmittedObjects follows the message of a feed with an object that can't
// be stored, until it can be.
func TestFeedMessageNamesOmittedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &failingStore{err: fmt.Errorf("%w: it is too long", store.ErrData)}
		st, p, _, term := newTestPipeline(t, func(st *store.Store) feedStore { failing.Store = st; return failing })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		end := Step{Type: End, Account: "prod", Term: term, Feed: pods, Mark: "9"}
		for _, tt := range []struct {
			why  string
			step Step
			want string // of the message, in part; empty for none
		}{
			{"the object comes", upsert(term, "bad", 1), "an object is left out, because the database can't keep it: Pod default/bad: "},
			{"another comes", upsert(term, "good", 2), "Pod default/bad: the database can't keep this data: it is too long"},
			{"the snapshot ends", end, "Pod default/bad"},
			{"a snapshot begins", Step{Type: Begin, Account: "prod", Term: term, Feed: pods}, ""},
			{"it tells the object again", upsert(term, "bad", 3), "Pod default/bad"},
			{"it ends", end, "Pod default/bad"},
			{"the object goes", Step{Type: Delete, Account: "prod", Term: term, Feed: pods, Object: vedette.Object{Key: upsert(term, "bad", 4).Object.Key}}, ""},
			{"it comes back", upsert(term, "bad", 5), "Pod default/bad"},
		} {
			putAll(t, p, tt.step)
			synctest.Wait()
			if got := feedRow(t, st).Message; !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%s: the feed says %q, want %q", tt.why, got, tt.want)
			}
		}
		failing.repaired.Store(true)
		putAll(t, p, upsert(term, "bad", 6))
		synctest.Wait()
		if got := feedRow(t, st); got.Message != "" || storedVersions(t, st)["bad"] != "6" {
			t.Errorf("the object is stored after all, and the feed says %q", got.Message)
		}
		cancel()
		<-done
	})
}

// blockedStore is a store with an account that can't be written, as when somebody holds its
// row, until it is open.
type blockedStore struct {
	*store.Store
	unblock chan struct{}
}

func (w *blockedStore) Commit(ctx context.Context, b store.Batch) ([]store.Change, error) {
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
	term, err := st.Acquire(context.Background(), "other", store.Holder{Agent: "a", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Declare(context.Background(), "other", term, []store.DeclaredFeed{{Feed: pods}}, nil); err != nil {
		t.Fatal(err)
	}
	return term
}

func forOtherAccount(s Step, term vedette.Term, size int) Step {
	s.Account, s.Term, s.Size = "other", term, size
	return s
}

// TestStalledAccountDoesNotBlockOthers has an account that can't be written. The other one of
// its agent goes on, and is fresh; when the first can be written again nothing is
// missing.
func TestStalledAccountDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedStore{unblock: make(chan struct{})}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) feedStore { blocked.Store = st; return blocked })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "held", 1))
		synctest.Wait()
		at := time.Now()
		putAll(t, p, forOtherAccount(upsert(0, "free", 1), otherTerm, 100), upsert(term, "held", 2), Step{Type: Heartbeat, Time: at})
		time.Sleep(2 * maxTaskWait) // the bubble's
		synctest.Wait()
		if got := storedVersions(t, st); got["free"] != "1" || got["held"] != "" || !responses.current().fresh.Equal(at) || responses.current().stalled == nil || responses.current().acked != 0 {
			t.Errorf("%v are stored and the agent hears %+v; want the free one stored, and no more acknowledged than is stored", got, responses.current())
		}
		close(blocked.unblock)
		synctest.Wait()
		if got := storedVersions(t, st); got["held"] != "2" || responses.current().acked != 3 || responses.current().stalled != nil || responses.current().revoked != nil {
			t.Errorf("%v are stored and the agent hears %+v when the account is free", got, responses.current())
		}
		cancel()
		<-done
	})
}

// TestBlockingAccountIsRevoked has one that can't be written while others have more
// to send than an agent may have under way.
func TestBlockingAccountIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedStore{unblock: make(chan struct{})}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) feedStore { blocked.Store = st; return blocked })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "held", 1))
		time.Sleep(2 * maxTaskWait) // the bubble's
		putAll(t, p, forOtherAccount(upsert(0, "free", 1), otherTerm, minBlockedBytes), upsert(term, "held", 2))
		time.Sleep(2 * maxStall) // the bubble's
		synctest.Wait()
		if responses.current().acked != 3 || responses.current().revoked == nil || !strings.Contains(responses.current().revoked.Error(), "it held up other accounts of its agent") {
			t.Errorf("the agent hears %+v; want all acknowledged, and the account void", responses.current())
		}
		close(blocked.unblock)
		putAll(t, p, upsert(term, "held", 3))
		synctest.Wait()
		if got := storedVersions(t, st); got["held"] != "" || feedMark(t, st) != "" {
			t.Errorf("%v are stored at the mark %s of an account that was given up: what was before is missing", got, feedMark(t, st))
		}
		nextTerm, err := st.Acquire(ctx, "prod", store.Holder{Agent: "a", Server: "s"})
		if err != nil {
			t.Fatal(err)
		}
		putAll(t, p, upsert(nextTerm, "held", 3))
		synctest.Wait()
		if got := storedVersions(t, st); got["held"] != "3" || responses.current().acked != 5 {
			t.Errorf("%v are stored in the next term, %d are acknowledged", got, responses.current().acked)
		}
		cancel()
		<-done
	})
}

// TestBlockingAccountThatUsesTheWholeBudgetIsRevoked has one that can't be written, and has used up
// what its agent may have under way: that of the others can't even be sent.
func TestBlockingAccountThatUsesTheWholeBudgetIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedStore{unblock: make(chan struct{})}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) feedStore { blocked.Store = st; return blocked })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "held", 1))
		time.Sleep(2 * maxTaskWait) // the bubble's
		large := upsert(term, "held", 2)
		large.Size = 512 << 10 // as little as agents let of snapshots be under way
		putAll(t, p, forOtherAccount(upsert(0, "free", 1), otherTerm, 100), large)
		time.Sleep(2 * maxStall) // the bubble's
		synctest.Wait()
		if responses.current().acked != 3 || responses.current().revoked == nil {
			t.Errorf("the agent hears %+v; want all acknowledged, and the account void", responses.current())
		}
		cancel()
		<-done
	})
}

// TestUnavailableDatabaseRevokesNoAccount has nothing be written at all, for long: no
// account is in the way of another then.
func TestUnavailableDatabaseRevokesNoAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := &unavailableStore{times: 1000}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) feedStore { unavailable.Store = st; return unavailable })
		defer st.Close()
		otherTerm := registerOtherAccount(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "one", 1), forOtherAccount(upsert(0, "two", 1), otherTerm, minBlockedBytes))
		time.Sleep(10 * time.Minute) // the bubble's
		synctest.Wait()
		if responses.current().revoked != nil || responses.current().acked != 0 {
			t.Errorf("the agent hears %+v", responses.current())
		}
		cancel()
		<-done
	})
}

// TestNothingIsStoredAfterARevocation holds that what an account's agent sent before it heard of
// the refusal is not stored: its mark would be beyond what was refused.
func TestNothingIsStoredAfterARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &failingStore{err: vedette.Errorf(vedette.Invalid, "this makes no sense")}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) feedStore { failing.Store = st; return failing })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		putAll(t, p, upsert(term, "bad", 1))
		synctest.Wait()
		putAll(t, p, upsert(term, "good", 2))
		synctest.Wait()
		if got := storedVersions(t, st); responses.current().revoked == nil || len(got) != 0 || feedMark(t, st) != "" || responses.current().acked != 2 {
			t.Errorf("%v are stored at the mark %q, and the agent hears %+v", got, feedMark(t, st), responses.current())
		}
		cancel()
		<-done
	})
}
