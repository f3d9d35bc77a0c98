package writetest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// resumable is an account with live Pods and Services, and ClusterRoles that fail, whose agents change.
type resumable struct {
	*storetest.Writer
	t    *testing.T
	seen time.Time // up to which the live feeds are complete
}

func newResumable(t *testing.T, s *store.Store, account vedette.AccountName) *resumable {
	t.Helper()
	r := &resumable{Writer: storetest.NewWriter(t, s, account, storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services), storetest.FeedOf(storetest.Roles)),
		t: t, seen: time.Now().Add(-time.Minute).Truncate(time.Microsecond)}
	mark := vedette.Mark("5")
	r.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive},
		{Feed: storetest.FeedOf(storetest.Services), Mark: &mark, State: vedette.FeedLive},
		{Feed: storetest.FeedOf(storetest.Roles), Mark: &mark, State: vedette.FeedFailing, Message: "why"}}})
	if err := s.RecordLastSeen(t.Context(), []registry.LastSeen{{Account: account, Term: r.Term, At: r.seen}}); err != nil {
		t.Fatal(err)
	}
	return r
}

// next makes another agent the cacher.
func (r *resumable) next() {
	r.t.Helper()
	term, err := r.Store.Acquire(r.t.Context(), r.Account, registry.CacherClaim{Agent: "agent-2", Server: "server-2"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Term = term
}

// live reports kinds live, and nothing else.
func (r *resumable) live(kinds ...vedette.Kind) {
	var feeds []commit.FeedUpdate
	for _, k := range kinds {
		feeds = append(feeds, commit.FeedUpdate{Feed: storetest.FeedOf(k), State: vedette.FeedLive})
	}
	r.Commit(commit.Batch{Feeds: feeds})
}

// shows expects the states of Pods, Services and ClusterRoles as readers see them, up to when Pods are complete, and the states as they are
// stored, unless the account is in another database.
func (r *resumable) shows(when, states, stored string) {
	r.t.Helper()
	var shown []string
	kinds := []vedette.Kind{storetest.Pods, storetest.Services, storetest.Roles}
	counts := map[vedette.FeedState]int64{}
	for _, k := range kinds {
		f := storetest.FeedStatus(r.t, r.Store, r.Account, storetest.FeedOf(k))
		shown = append(shown, string(f.State))
		counts[f.State]++
		if k != storetest.Roles && !f.LastSeen.Equal(r.seen) {
			r.t.Errorf("%s: %s are complete up to %v, want %v", when, k, f.LastSeen, r.seen)
		}
		if f.Message != "" && f.State != vedette.FeedFailing {
			r.t.Errorf("%s: %s have the message %q", when, k, f.Message)
		}
	}
	if got := strings.Join(shown, " "); got != states {
		r.t.Errorf("%s: got the states %s, want %s", when, got, states)
	}
	byAccount, err := r.Store.FeedCountsByAccount(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for state, n := range counts {
		if got := byAccount[r.Account][state].Feeds; got != n {
			r.t.Errorf("%s: got %d feeds that are %s, want %d", when, got, state, n)
		}
	}
	var rows []string
	err = r.Store.QueryEach(r.t.Context(), func(row *sql.Rows) error {
		var kind, state string
		err := row.Scan(&kind, &state)
		rows = append(rows, kind+" "+state)
		return err
	}, sqldb.Named("read the stored states", `SELECT k.name, f.state FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id WHERE a.name = ?`),
		string(r.Account))
	if err != nil {
		r.t.Fatal(err)
	}
	var want []string
	for i, state := range strings.Split(stored, " ") {
		want = append(want, kinds[i].Name+" "+state)
	}
	if slices.Sort(rows); len(rows) > 0 {
		slices.Sort(want)
		storetest.Equal(r.t, when+": stored states", rows, want)
	}
}

// Resumption are tests of accounts whose next agent goes on with their feeds.
var Resumption = map[string]func(*testing.T, *store.Store){
	"the next agent goes on with all feeds": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		r.shows("at first", "live live failing", "live live failing")
		r.next()
		r.shows("before the agent has reported", "pending pending failing", "live live failing")
		r.next()
		r.shows("after a third one came", "pending pending failing", "live live failing")
		mark := s.ChangedAccounts(0).Mark
		r.live(storetest.Pods, storetest.Services)
		if changes := s.ChangedAccounts(mark); !changes.All && !slices.Contains(changes.Names, "prod") {
			t.Errorf("after the feeds of account prod are live again: got changed accounts %v, want prod among them", changes.Names)
		}
		r.shows("when all are live again", "live live failing", "live live failing")
		r.live(storetest.Pods)
		r.shows("when it reports that again", "live live failing", "live live failing")
	},
	"the next agent goes on with a part of the feeds": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		r.next()
		r.live(storetest.Pods)
		r.shows("when one is live", "live pending failing", "live pending failing")
		r.next()
		r.shows("before the third agent has reported", "pending pending failing", "live pending failing")
		r.live(storetest.Services)
		r.shows("when the other one is live", "pending live failing", "pending live failing")
		r.live(storetest.Pods)
		r.shows("when both are", "live live failing", "live live failing")
	},
	"all feeds are live, with changes": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		r.next()
		r.Commit(commit.Batch{Upserts: []vedette.Object{pod("web", 7)}})
		r.shows("after a change", "pending pending failing", "live live failing")
		mark := vedette.Mark("8")
		r.Commit(commit.Batch{Upserts: []vedette.Object{pod("web", 8)}, Feeds: []commit.FeedUpdate{
			{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive},
			{Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedLive}, {Feed: storetest.FeedOf(storetest.Roles), State: vedette.FeedLive}}})
		r.shows("when all are live", "live live live", "live live live")
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Mark != "8" || f.Objects != 1 {
			t.Errorf("got mark %q and %d objects, want 8 and one", f.Mark, f.Objects)
		}
	},
	"a feed begins anew": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		r.next()
		storetest.BeginSnapshot(t, r.Writer)
		r.shows("in the snapshot", "syncing pending failing", "syncing pending failing")
		r.live(storetest.Services)
		r.shows("when the other feed is live", "syncing live failing", "syncing live failing")
		r.next()
		r.shows("when the next agent has the account", "pending pending failing", "syncing live failing")
		r.live(storetest.Services)
		r.shows("when that one goes on", "pending live failing", "pending live failing")
	},
	"a feed fails": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		r.next()
		r.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedFailing, Message: "gone"}}})
		r.shows("before the other one is live", "pending failing failing", "pending failing failing")
	},
	"the account is settled when its feeds are live": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		r.next()
		for _, wants := range []bool{false, true} {
			if err := s.MarkSettled(t.Context(), "prod", r.Term, true); err != nil {
				t.Fatal(err)
			}
			if row, err := s.Account(t.Context(), "prod"); err != nil || row.FirstSync.Settled.IsZero() == wants {
				t.Errorf("got %+v, %v, want settled %v", row.FirstSync, err, wants)
			}
			r.live(storetest.Pods, storetest.Services)
		}
	},
	"the account has no agent any more": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		r.next()
		if err := s.ReleaseServer(t.Context(), "server-2"); err != nil {
			t.Fatal(err)
		}
		r.shows("while it has none", "pending pending failing", "live live failing")
		r.next()
		r.shows("after its agent left early", "pending pending failing", "live live failing")
		r.live(storetest.Pods, storetest.Services)
		r.shows("when the next one goes on", "live live failing", "live live failing")
	},
	"an agent with another shape reads all anew": func(t *testing.T, s *store.Store) {
		r := newResumable(t, s, "prod")
		term, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "agent-2", Server: "server-2", Shape: "another"})
		if err != nil {
			t.Fatal(err)
		}
		r.Term = term
		r.shows("before it has begun", "pending pending failing", "live live failing")
		storetest.BeginSnapshot(t, r.Writer)
		r.shows("in its first snapshot", "syncing pending failing", "syncing pending failing")
	},
	"many accounts go on at once": func(t *testing.T, s *store.Store) {
		var accounts [40]*resumable
		var group sync.WaitGroup
		each := func(do func(i int, r *resumable)) {
			for i, r := range accounts {
				group.Go(func() { do(i, r) })
			}
			group.Wait()
		}
		each(func(i int, _ *resumable) {
			accounts[i] = newResumable(t, s, vedette.AccountName(fmt.Sprint("account-", i)))
		})
		each(func(_ int, r *resumable) { r.next() })
		each(func(i int, r *resumable) {
			if r.live(storetest.Pods); i%3 == 0 {
				r.live(storetest.Services)
			}
		})
		for i, r := range accounts {
			if i%3 == 0 {
				r.shows(string(r.Account), "live live failing", "live live failing")
			} else {
				r.shows(string(r.Account), "live pending failing", "live pending failing")
			}
		}
		each(func(_ int, r *resumable) { r.next() })
		each(func(i int, r *resumable) {
			if i%3 == 0 {
				r.live(storetest.Pods, storetest.Services)
			} else {
				r.live(storetest.Pods)
			}
		})
		for i, r := range accounts {
			if i%3 == 0 {
				r.shows(string(r.Account)+" again", "live live failing", "live live failing")
			} else {
				r.shows(string(r.Account)+" again", "live pending failing", "live pending failing")
			}
		}
	},
}
