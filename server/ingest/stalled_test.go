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

// spoilt is a store whose database fails, until it is mended, over each batch that has
// an object called bad.
type spoilt struct {
	*store.Store
	with   error
	mended atomic.Bool
}

func (w *spoilt) Commit(ctx context.Context, b store.Batch) ([]store.Change, error) {
	for _, o := range b.Upserts {
		if o.Name == "bad" && !w.mended.Load() {
			return nil, w.with
		}
	}
	return w.Store.Commit(ctx, b)
}

// TestOnlyDataIsLeftOut holds that an object is left out for an error that names its
// data, and for no other: all else is tried until it is done, and the mark waits.
func TestOnlyDataIsLeftOut(t *testing.T) {
	for _, tt := range []struct {
		with error
		data bool
	}{
		{fmt.Errorf("commit: %w", store.ErrData), true},
		{context.DeadlineExceeded, false},
		{fmt.Errorf("upsert 3 rows: %w", sql.ErrTxDone), false},
		{driver.ErrBadConn, false},
		{io.ErrUnexpectedEOF, false},
		{errors.New("an error that nobody knows"), false},
		{vedette.Errorf(vedette.Unavailable, "the database is away"), false},
	} {
		t.Run(tt.with.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := &spoilt{with: tt.with}
				st, l, a, term := stage(t, func(st *store.Store) writer { failing.Store = st; return failing })
				defer st.Close()
				putAll(t, l, upsert(term, "good", 1), upsert(term, "bad", 2), upsert(term, "fine", 3))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- l.Run(ctx) }()
				time.Sleep(time.Minute) // the bubble's
				synctest.Wait()
				if tt.data {
					if got := stored(t, st); len(got) != 2 || a.now().acked != 3 || mark(t, st) != "3" {
						t.Errorf("%v are stored, %d acknowledged, the mark is %s; want 2, 3 and 3", got, a.now().acked, mark(t, st))
					}
				} else {
					if a.now().acked != 0 || mark(t, st) != "" || a.now().void != nil || l.in.Refused() != 0 {
						t.Errorf("%+v, the mark is %q, %d are left out; want all to wait", a.now(), mark(t, st), l.in.Refused())
					}
					if a.now().stalled == nil || vedette.KindOf(a.now().stalled) != vedette.Unavailable {
						t.Errorf("nobody is told why the account waits, but %v", a.now().stalled)
					}
				}
				failing.mended.Store(true)
				time.Sleep(time.Minute) // the bubble's
				synctest.Wait()
				if got := stored(t, st); !tt.data && (len(got) != 3 || a.now().acked != 3 || mark(t, st) != "3" || a.now().stalled != nil) {
					t.Errorf("when the database is well: %v stored, %+v, the mark is %s", got, a.now(), mark(t, st))
				}
				cancel()
				<-done
			})
		})
	}
}

func mark(t *testing.T, st *store.Store) vedette.Mark { return feedRow(t, st).Mark }

func feedRow(t *testing.T, st *store.Store) store.FeedStatus {
	t.Helper()
	feeds, err := st.Feeds(context.Background(), "prod")
	if err != nil || len(feeds) != 1 {
		t.Fatalf("feeds %v, %v", feeds, err)
	}
	return feeds[0]
}

// TestTheFeedSaysWhatIsLeftOut follows the message of a feed with an object that can't
// be stored, until it can be.
func TestTheFeedSaysWhatIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &spoilt{with: fmt.Errorf("%w: it is too long", store.ErrData)}
		st, l, _, term := stage(t, func(st *store.Store) writer { failing.Store = st; return failing })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
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
			putAll(t, l, tt.step)
			synctest.Wait()
			if got := feedRow(t, st).Message; !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%s: the feed says %q, want %q", tt.why, got, tt.want)
			}
		}
		failing.mended.Store(true)
		putAll(t, l, upsert(term, "bad", 6))
		synctest.Wait()
		if got := feedRow(t, st); got.Message != "" || stored(t, st)["bad"] != "6" {
			t.Errorf("the object is stored after all, and the feed says %q", got.Message)
		}
		cancel()
		<-done
	})
}

// locked is a store with an account that can't be written, as when somebody holds its
// row, until it is open.
type locked struct {
	*store.Store
	open chan struct{}
}

func (w *locked) Commit(ctx context.Context, b store.Batch) ([]store.Change, error) {
	if b.Account == "prod" {
		select {
		case <-w.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return w.Store.Commit(ctx, b)
}

// other registers a second account with a feed.
func other(t *testing.T, st *store.Store) vedette.Term {
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

func ofOther(s Step, term vedette.Term, size int) Step {
	s.Account, s.Term, s.Size = "other", term, size
	return s
}

// TestOneAccountHoldsNobodyUp has an account that can't be written. The other one of
// its agent goes on, and is fresh; when the first can be written again nothing is
// missing.
func TestOneAccountHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &locked{open: make(chan struct{})}
		st, l, a, term := stage(t, func(st *store.Store) writer { held.Store = st; return held })
		defer st.Close()
		otherTerm := other(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		putAll(t, l, upsert(term, "held", 1))
		synctest.Wait()
		at := time.Now()
		putAll(t, l, ofOther(upsert(0, "free", 1), otherTerm, 100), upsert(term, "held", 2), Step{Type: Pulse, Time: at})
		time.Sleep(2 * mostWaiting) // the bubble's
		synctest.Wait()
		if got := stored(t, st); got["free"] != "1" || got["held"] != "" || !a.now().fresh.Equal(at) || a.now().stalled == nil || a.now().acked != 0 {
			t.Errorf("%v are stored and the agent hears %+v; want the free one stored, and no more acknowledged than is stored", got, a.now())
		}
		close(held.open)
		synctest.Wait()
		if got := stored(t, st); got["held"] != "2" || a.now().acked != 3 || a.now().stalled != nil || a.now().void != nil {
			t.Errorf("%v are stored and the agent hears %+v when the account is free", got, a.now())
		}
		cancel()
		<-done
	})
}

// TestAnAccountIsGivenUpForOthers has one that can't be written while others have more
// to send than an agent may have under way.
func TestAnAccountIsGivenUpForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &locked{open: make(chan struct{})}
		st, l, a, term := stage(t, func(st *store.Store) writer { held.Store = st; return held })
		defer st.Close()
		otherTerm := other(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		putAll(t, l, upsert(term, "held", 1))
		time.Sleep(2 * mostWaiting) // the bubble's
		putAll(t, l, ofOther(upsert(0, "free", 1), otherTerm, wantsRoom), upsert(term, "held", 2))
		time.Sleep(2 * mostStalled) // the bubble's
		synctest.Wait()
		if a.now().acked != 3 || a.now().void == nil || !strings.Contains(a.now().void.Error(), "it held up other accounts of its agent") {
			t.Errorf("the agent hears %+v; want all acknowledged, and the account void", a.now())
		}
		close(held.open)
		putAll(t, l, upsert(term, "held", 3))
		synctest.Wait()
		if got := stored(t, st); got["held"] != "" || mark(t, st) != "" {
			t.Errorf("%v are stored at the mark %s of an account that was given up: what was before is missing", got, mark(t, st))
		}
		next, err := st.Acquire(ctx, "prod", store.Holder{Agent: "a", Server: "s"})
		if err != nil {
			t.Fatal(err)
		}
		putAll(t, l, upsert(next, "held", 3))
		synctest.Wait()
		if got := stored(t, st); got["held"] != "3" || a.now().acked != 5 {
			t.Errorf("%v are stored in the next term, %d are acknowledged", got, a.now().acked)
		}
		cancel()
		<-done
	})
}

// TestAnAccountThatTakesAllRoomIsGivenUp has one that can't be written, and has used up
// what its agent may have under way: that of the others can't even be sent.
func TestAnAccountThatTakesAllRoomIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &locked{open: make(chan struct{})}
		st, l, a, term := stage(t, func(st *store.Store) writer { held.Store = st; return held })
		defer st.Close()
		otherTerm := other(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		putAll(t, l, upsert(term, "held", 1))
		time.Sleep(2 * mostWaiting) // the bubble's
		large := upsert(term, "held", 2)
		large.Size = 512 << 10 // as little as agents let of snapshots be under way
		putAll(t, l, ofOther(upsert(0, "free", 1), otherTerm, 100), large)
		time.Sleep(2 * mostStalled) // the bubble's
		synctest.Wait()
		if a.now().acked != 3 || a.now().void == nil {
			t.Errorf("the agent hears %+v; want all acknowledged, and the account void", a.now())
		}
		cancel()
		<-done
	})
}

// TestADatabaseThatIsAwayCostsNoAccount has nothing be written at all, for long: no
// account is in the way of another then.
func TestADatabaseThatIsAwayCostsNoAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := &away{times: 1000}
		st, l, a, term := stage(t, func(st *store.Store) writer { gone.Store = st; return gone })
		defer st.Close()
		otherTerm := other(t, st)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		putAll(t, l, upsert(term, "one", 1), ofOther(upsert(0, "two", 1), otherTerm, wantsRoom))
		time.Sleep(10 * time.Minute) // the bubble's
		synctest.Wait()
		if a.now().void != nil || a.now().acked != 0 {
			t.Errorf("the agent hears %+v", a.now())
		}
		cancel()
		<-done
	})
}

// TestNothingFollowsARefusal holds that what an account's agent sent before it heard of
// the refusal is not stored: its mark would be beyond what was refused.
func TestNothingFollowsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &spoilt{with: vedette.Errorf(vedette.Invalid, "this makes no sense")}
		st, l, a, term := stage(t, func(st *store.Store) writer { refused.Store = st; return refused })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		putAll(t, l, upsert(term, "bad", 1))
		synctest.Wait()
		putAll(t, l, upsert(term, "good", 2))
		synctest.Wait()
		if got := stored(t, st); a.now().void == nil || len(got) != 0 || mark(t, st) != "" || a.now().acked != 2 {
			t.Errorf("%v are stored at the mark %q, and the agent hears %+v", got, mark(t, st), a.now())
		}
		cancel()
		<-done
	})
}
