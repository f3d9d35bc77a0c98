package storetest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var accountTests = map[string]func(*testing.T, *store.Store){
	"accounts are read by name, and those that changed are known": func(t *testing.T, s *store.Store) {
		for _, name := range []vedette.AccountName{"b", "a", "c"} {
			newWriter(t, s, name, feedOf(pods))
		}
		_, position := s.ChangedAccounts(0)
		rows, err := s.AccountsNamed(t.Context(), "c", "a", "nobody")
		if err != nil || len(rows) != 2 || rows[0].Name != "a" || rows[1].Name != "c" || rows[0].Holder != "agent-1" {
			t.Errorf("got %+v, %v, want a and c", rows, err)
		}
		register(t, s, "d")
		if rows, err := s.OrphanedAccounts(t.Context()); err != nil || len(rows) != 1 || rows[0].Name != "d" {
			t.Errorf("accounts without agents: got %+v, %v, want d", rows, err)
		}
		w := acquire(t, s, "b")
		mark := vedette.Mark("7")
		for _, step := range []struct {
			name    string
			do      func()
			changed bool
		}{
			{"live", func() {
				w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
			}, true},
			{"a mark", func() {
				w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
			}, false},
			{"an object", func() { w.put(object(pods, "n", "a", "1")) }, false},
			{"failing", func() {
				w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedFailing, Message: "refused"}}})
			}, true},
			{"live again", func() {
				w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedLive}}})
			}, true},
		} {
			_, position = s.ChangedAccounts(position)
			step.do()
			names, _ := s.ChangedAccounts(position)
			if got := slices.Equal(names, []vedette.AccountName{"b"}); got != step.changed || !got && len(names) > 0 {
				t.Errorf("%s: got changed accounts %v, want b: %v", step.name, names, step.changed)
			}
		}
	},
	"the first synchronization of an account ends once, and only without feeds that wait": func(t *testing.T, s *store.Store) {
		read := func() store.FirstSync {
			t.Helper()
			syncs, err := s.AccountSyncs(t.Context())
			row, rowErr := s.Account(t.Context(), "prod")
			if err != nil || rowErr != nil || len(syncs) != 1 || syncs[0].Account != "prod" || syncs[0].Term != row.Term || syncs[0].FirstSync != row.FirstSync {
				t.Fatalf("got %+v, %v and account %+v, %v, want the same of prod", syncs, err, row, rowErr)
			}
			return row.FirstSync
		}
		mark := func(step string, term vedette.Term, complete, wantSettled, wantComplete bool) store.FirstSync {
			t.Helper()
			before := s.AccountsVersion()
			if err := s.MarkSettled(t.Context(), "prod", term, complete); err != nil {
				t.Fatal(err)
			}
			got := read()
			if got.Settled.IsZero() == wantSettled || got.Complete.IsZero() == wantComplete {
				t.Errorf("%s: got %+v, want settled %t, complete %t", step, got, wantSettled, wantComplete)
			}
			if s.AccountsVersion() == before {
				t.Errorf("%s: the version of the accounts has not changed", step)
			}
			return got
		}
		register(t, s, "prod")
		w := acquire(t, s, "prod")
		mark("without feeds", w.term, true, false, false)
		w.declare(feedOf(pods), feedOf(services))
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedLive}}})
		mark("a feed waits", w.term, true, false, false)
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(services), State: vedette.FeedDenied}}})
		mark("another agent's term", w.term+1, true, false, false)
		settled := mark("settled", w.term, false, true, false)
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(services), State: vedette.FeedLive}}})
		complete := mark("complete", w.term, true, true, true)
		if again := mark("again", w.term, true, true, true); again != complete || !again.Settled.Equal(settled.Settled) {
			t.Errorf("got %+v, want %+v, settled at %v", again, complete, settled.Settled)
		}
		w = acquire(t, s, "prod") // its feeds wait to be confirmed
		if got := read(); got != complete {
			t.Errorf("with another cacher: got %+v, want %+v", got, complete)
		}
		retire(t, w)
		register(t, s, "prod")
		if got := read(); got != (store.FirstSync{}) {
			t.Errorf("registered after it was retired: got %+v, want nothing", got)
		}
	},
	"the size of an account is the number of its objects in all feeds": func(t *testing.T, s *store.Store) {
		expect := func(step string, want map[vedette.AccountName]int64) {
			t.Helper()
			if got, err := s.AccountSizes(t.Context()); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s: got %v, %v, want %v", step, got, err, want)
			}
		}
		expect("no accounts", map[vedette.AccountName]int64{})
		register(t, s, "new") // without feeds
		newWriter(t, s, "empty", feedOf(pods))
		w := newWriter(t, s, "prod", feedOf(pods), feedOf(services))
		w.put(object(pods, "n", "a", "1"), object(pods, "n", "b", "1"), object(services, "n", "a", "1"))
		newWriter(t, s, "other", feedOf(pods)).put(object(pods, "n", "a", "1"))
		expect("stored", map[vedette.AccountName]int64{"empty": 0, "prod": 3, "other": 1})
		w.put(object(pods, "n", "a", "2"), object(services, "n", "b", "2"))
		w.commit(store.Batch{Deletes: []store.Deletion{{Key: object(pods, "n", "b", "1").Key, Version: "3"}}})
		expect("changed", map[vedette.AccountName]int64{"empty": 0, "prod": 3, "other": 1})
		w.declare(feedOf(pods))
		expect("a feed is gone", map[vedette.AccountName]int64{"empty": 0, "prod": 1, "other": 1})
		retire(t, w) // its data is still there
		expect("an account is retired", map[vedette.AccountName]int64{"empty": 0, "other": 1})
	},
	"an account is read back as it was stored": func(t *testing.T, s *store.Store) {
		namespaced := true
		want := vedette.Account{
			Name:    "prod é🙂",
			Cluster: vedette.Cluster{UID: "u1", Host: "https://10.0.0.1:6443", Fingerprint: "AA:BB", Version: "v1.36.3"},
			Properties: vedette.Properties{Environment: "prod", Permissions: &vedette.Permissions{Read: []string{"dev"}},
				CustomResources: []vedette.CustomResource{{KubernetesKind: "Rollout.argoproj.io", Namespaced: &namespaced}}},
			Namespaces: []string{"default", "kube-system"},
		}
		before := time.Now().Add(-time.Millisecond)
		row, err := s.Register(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(row.Account, want) {
			t.Errorf("got %+v\nwant %+v", row.Account, want)
		}
		if row.Registered.Before(before) || row.Registered.After(time.Now()) {
			t.Errorf("got registration time %v, want now", row.Registered)
		}
	},
	"unknown namespaces are nil, and an empty list stays empty": func(t *testing.T, s *store.Store) {
		for name, namespaces := range map[vedette.AccountName][]string{"unknown": nil, "none": {}} {
			row, err := s.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}, Namespaces: namespaces})
			if err != nil || (row.Namespaces == nil) != (namespaces == nil) {
				t.Errorf("%s: got %#v, %v, want %#v", name, row.Namespaces, err, namespaces)
			}
		}
	},
	"a new shape requires all objects again": func(t *testing.T, s *store.Store) {
		pods := vedette.Kind{Name: "Pod"}
		w := newWriter(t, s, "prod", feedOf(pods))
		mark := vedette.Mark("9")
		w.commit(store.Batch{Upserts: []vedette.Object{object(pods, "shop", "web", "7")},
			Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		acquire(t, s, "prod")
		if feeds, err := s.Marks(t.Context(), "prod"); err != nil || feeds[0].Mark != "9" {
			t.Fatalf("same shape: got marks %+v, %v, want 9", feeds, err)
		}
		term, err := s.Acquire(t.Context(), "prod", store.Holder{Agent: "agent-2", Server: "server-1", Shape: "another"})
		if err != nil {
			t.Fatal(err)
		}
		w.term = term
		feeds, err := s.Marks(t.Context(), "prod")
		if err != nil || feeds[0].Mark != "" || feeds[0].Objects != 1 {
			t.Errorf("got %+v, %v, want no mark and the object", feeds, err)
		}
		if changes := w.put(object(pods, "shop", "web", "7")); len(changes) != 1 {
			t.Errorf("got changes %v, want the object again", changes)
		}
	},
	"a second cluster under a name is rejected and changes nothing": func(t *testing.T, s *store.Store) {
		first := register(t, s, "prod")
		_, err := s.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "another", Host: "https://elsewhere"}})
		if vedette.KindOf(err) != vedette.Conflict {
			t.Fatalf("got %v, want a conflict", err)
		}
		for _, part := range []string{"uid-prod", "https://prod", "another", "https://elsewhere"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("got message %v, want one that contains %q", err, part)
			}
		}
		accounts, err := s.Accounts(t.Context())
		if err != nil || len(accounts) != 1 || !reflect.DeepEqual(accounts[0], first) {
			t.Errorf("got %+v, %v, want %+v", accounts, err, first)
		}
		if names, err := s.AccountNames(t.Context()); err != nil || len(names) != 1 || names[0] != "prod" {
			t.Errorf("got the names %q, %v, want prod", names, err)
		}
	},
	"a cluster with a new address is the same cluster": func(t *testing.T, s *store.Store) {
		register(t, s, "prod")
		moved := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "uid-prod", Host: "https://new"}}
		if _, err := s.Register(t.Context(), moved); err != nil {
			t.Fatal(err)
		}
		acquireAs(t, s, store.Holder{Agent: "agent-1", Account: &moved})
		if row := onlyAccount(t, s); row.Cluster.Host != "https://new" {
			t.Errorf("got %+v, want the new host", row)
		}
	},
	"a uid that RBAC hides later is kept": func(t *testing.T, s *store.Store) {
		known := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "uid-prod", Host: "https://prod", Fingerprint: "AA"}}
		hidden := known
		hidden.Cluster.UID = ""
		for _, a := range []vedette.Account{known, hidden} {
			if _, err := s.Register(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			acquireAs(t, s, store.Holder{Agent: "agent-1", Account: &a})
		}
		if row := onlyAccount(t, s); row.Cluster.UID != "uid-prod" {
			t.Errorf("got %+v, want the uid", row)
		}
	},
	"registering an existing account does not change it": func(t *testing.T, s *store.Store) {
		mine := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u", Host: "https://prod", Version: "v1"}, Namespaces: []string{"a"},
			Properties: vedette.Properties{Environment: "prod", Permissions: &vedette.Permissions{Read: []string{"dev"}, Write: []string{"ops"}}}}
		if _, err := s.Register(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		acquireAs(t, s, store.Holder{Agent: "agent-1", Server: "server-1", Account: &mine})
		before := onlyAccount(t, s)
		row, err := s.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u", Host: "https://elsewhere"}})
		if err != nil || !reflect.DeepEqual(row, before) || !reflect.DeepEqual(onlyAccount(t, s), before) {
			t.Errorf("got %+v, %v\nwant %+v", row, err, before)
		}
	},
	"the new cacher replaces the details, except those to keep": func(t *testing.T, s *store.Store) {
		first := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"},
			Properties: vedette.Properties{Environment: "prod", Permissions: &vedette.Permissions{Read: []string{"dev"}}}}
		if _, err := s.Register(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		acquireAs(t, s, store.Holder{Agent: "agent-1", Account: &first})
		second := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u", Version: "v2"},
			Properties: vedette.Properties{Environment: "test"}, Namespaces: []string{"b"}}
		acquireAs(t, s, store.Holder{Agent: "agent-2", Account: &second, KeepPermissions: true})
		want := second
		want.Properties.Permissions = first.Properties.Permissions
		if row := onlyAccount(t, s); !reflect.DeepEqual(row.Account, want) || row.PermittedBy != "agent-1" {
			t.Errorf("got %+v\nwant %+v by agent-1", row, want)
		}
		third := second
		third.Namespaces = nil
		acquireAs(t, s, store.Holder{Agent: "agent-2", Account: &third, KeepNamespaces: true})
		if row := onlyAccount(t, s); !reflect.DeepEqual(row.Account, second) || row.PermittedBy != "agent-2" {
			t.Errorf("got %+v\nwant %+v by agent-2", row, second)
		}
	},
	"concurrent registrations of one name store one row": func(t *testing.T, s *store.Store) {
		errs := make(chan error)
		for range 8 {
			go func() {
				_, err := s.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}})
				errs <- err
			}()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if accounts, err := s.Accounts(t.Context()); err != nil || len(accounts) != 1 {
			t.Errorf("got accounts %v, %v, want 1", accounts, err)
		}
	},
	"names that a database cannot store are rejected": func(t *testing.T, s *store.Store) {
		for _, name := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 256)} {
			if _, err := s.Register(t.Context(), vedette.Account{Name: vedette.AccountName(name)}); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%.20q: got %v, want an error of kind %s", name, err, vedette.Invalid)
			}
		}
	},
	"acquiring raises the term, and releasing with an old term has no effect": func(t *testing.T, s *store.Store) {
		register(t, s, "prod")
		first, second := acquire(t, s, "prod"), acquire(t, s, "prod")
		if second.term <= first.term {
			t.Fatalf("got terms %d and %d, want the second one higher", first.term, second.term)
		}
		release(t, first)
		if row := onlyAccount(t, s); row.Holder != "agent-1" || row.Server != "server-1" || !row.Orphaned.IsZero() {
			t.Errorf("got %+v after a release with an old term, want the holder", row)
		}
		release(t, second)
		if row := onlyAccount(t, s); row.Holder != "" || row.Server != "" || row.Orphaned.IsZero() {
			t.Errorf("got %+v after a release, want no holder", row)
		}
	},
	"a live feed of a former cacher is pending": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{
			{Feed: feedOf(pods), State: vedette.FeedLive, Message: "slowly"},
			{Feed: feedOf(services), State: vedette.FeedDenied, Message: "forbidden"}}})
		w = acquire(t, s, "prod")
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.State != vedette.FeedPending || f.Message != "" {
			t.Errorf("got live feed %s %q, want pending", f.State, f.Message)
		}
		if f := feedStatus(t, s, "prod", feedOf(services)); f.State != vedette.FeedDenied || f.Message != "forbidden" {
			t.Errorf("got denied feed %s %q, want it unchanged", f.State, f.Message)
		}
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedLive}}})
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.State != vedette.FeedLive {
			t.Errorf("got %s after the new cacher reported it, want live", f.State)
		}
	},
	"last seen applies to live feeds only": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedLive}}})
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		recordLastSeen(t, w, at)
		if row := onlyAccount(t, s); !row.LastSeen.Equal(at) {
			t.Errorf("got last seen %v, want %v", row.LastSeen, at)
		}
		feeds, err := s.Feeds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range feeds {
			if f.LastSeen.Equal(at) != (f.Feed.Kind == pods) {
				t.Errorf("feed %s in state %s: got last seen %v, want %v for live feeds only", f.Feed, f.State, f.LastSeen, at)
			}
		}
	},
	"last seen is kept when a feed stops being live or a term ends": func(t *testing.T, s *store.Store) {
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		live := store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedLive},
			{Feed: feedOf(services), State: vedette.FeedLive}}}
		for why, end := range map[string]func(t *testing.T, w *writer){
			"failing": func(t *testing.T, w *writer) {
				w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedFailing}}})
			},
			"listed":   func(t *testing.T, w *writer) { beginSnapshot(t, w) },
			"taken":    func(t *testing.T, w *writer) { acquire(t, s, w.account) },
			"released": func(t *testing.T, w *writer) { release(t, w) },
			"started": func(t *testing.T, _ *writer) {
				if err := s.ReleaseAll(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			"retired": func(t *testing.T, w *writer) {
				release(t, w)
				if _, err := s.RetireOrphan(t.Context(), w.account, w.term); err != nil {
					t.Fatal(err)
				}
				register(t, s, w.account)
			},
		} {
			w := newWriter(t, s, vedette.AccountName(why))
			w.commit(live)
			recordLastSeen(t, w, at)
			end(t, w)
			if f := feedStatus(t, s, w.account, feedOf(pods)); !f.LastSeen.Equal(at) {
				t.Errorf("%s: got last seen %v, want %v", why, f.LastSeen, at)
			}
		}
	},
	"last seen of a former cacher is ignored": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		current := acquire(t, s, "prod")
		current.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), State: vedette.FeedLive}}})
		at := time.Now().Add(time.Hour)
		recordLastSeen(t, w, at)
		if f := feedStatus(t, s, "prod", feedOf(pods)); !f.LastSeen.Before(at) {
			t.Errorf("feed: got last seen %v, want before %v", f.LastSeen, at)
		}
		if row := onlyAccount(t, s); !row.LastSeen.Before(at) {
			t.Errorf("account: got last seen %v, want before %v", row.LastSeen, at)
		}
	},
	"their namespaces": testNamespaces,
	"an account that does not exist": func(t *testing.T, s *store.Store) {
		_, err := s.Acquire(t.Context(), "nobody", store.Holder{Agent: "a", Server: "s"})
		if !errors.Is(err, store.ErrNoAccount) || vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("acquire: got %v, want %v", err, store.ErrNoAccount)
		}
		if err := s.RemoveAccount(t.Context(), "nobody"); !errors.Is(err, store.ErrNoAccount) {
			t.Errorf("remove: got %v, want %v", err, store.ErrNoAccount)
		}
		if _, err := s.Commit(t.Context(), store.Batch{Account: "nobody"}); !errors.Is(err, store.ErrNoAccount) {
			t.Errorf("commit: got %v, want %v", err, store.ErrNoAccount)
		}
	},
	"an orphan is removed with its data, unless an agent has served it since": func(t *testing.T, s *store.Store) {
		served, orphan, returned := newWriter(t, s, "served"), newWriter(t, s, "orphan"), newWriter(t, s, "returned")
		for _, w := range []*writer{served, orphan, returned} {
			w.put(object(pods, "default", "a", "1"))
		}
		release(t, orphan)
		release(t, returned)
		acquire(t, s, "returned")
		for _, w := range []*writer{served, orphan, returned} {
			removed, err := s.RemoveOrphan(t.Context(), w.account, w.term)
			if err != nil || removed != (w == orphan) {
				t.Errorf("%s: got removed %v, %v, want %v", w.account, removed, err, w == orphan)
			}
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "objects", rowNames(queryAll(t, s, store.Query{})), []string{"returned Pod default/a@1", "served Pod default/a@1"})
		if stats, err := s.Stats(t.Context()); err != nil || stats.Objects != 2 {
			t.Errorf("got %+v, %v, want 2 objects", stats, err)
		}
	},
	"a retired account is hidden until its cluster registers again": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod", feedOf(pods))
		mark := vedette.Mark("9")
		w.commit(store.Batch{Upserts: []vedette.Object{object(pods, "shop", "web", "7")},
			Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		retire(t, w)
		if accounts, err := s.Accounts(t.Context()); err != nil || len(accounts) != 0 {
			t.Errorf("got accounts %v, %v, want none", accounts, err)
		}
		if names, err := s.AccountNames(t.Context()); err != nil || len(names) != 0 {
			t.Errorf("got the names %q, %v, want none", names, err)
		}
		equal(t, "objects", rowNames(queryAll(t, s, store.Query{})), nil)
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), store.Batch{Account: "prod", Term: w.term}); !errors.Is(err, store.ErrNoAccount) {
			t.Errorf("its last agent: got %v, want %v", err, store.ErrNoAccount)
		}
		// Another cluster has the name in the meantime.
		if _, err := s.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "another"}}); err != nil {
			t.Fatal(err)
		}
		other := acquire(t, s, "prod")
		equal(t, "objects of the other", rowNames(queryAll(t, s, store.Query{})), nil)
		retire(t, other)

		register(t, s, "prod")
		revived := acquire(t, s, "prod")
		if revived.term <= other.term || revived.term <= w.term {
			t.Errorf("got term %d, want it higher than %d and %d", revived.term, w.term, other.term)
		}
		equal(t, "objects", rowNames(queryAll(t, s, store.Query{})), []string{"prod Pod shop/web@7"})
		if feeds, err := s.Marks(t.Context(), "prod"); err != nil || len(feeds) != 1 || feeds[0].Mark != "9" {
			t.Errorf("got marks %+v, %v, want 9", feeds, err)
		}
		if err := s.RemoveAccount(t.Context(), "prod"); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveAccount(t.Context(), "prod"); !errors.Is(err, store.ErrNoAccount) {
			t.Errorf("got %v, want %v, because removing includes retired accounts", err, store.ErrNoAccount)
		}
	},
}

func retire(t *testing.T, w *writer) {
	t.Helper()
	release(t, w)
	if retired, err := w.s.RetireOrphan(t.Context(), w.account, w.term); err != nil || !retired {
		t.Fatalf("got retired %v, %v, want true", retired, err)
	}
}

func acquireAs(t *testing.T, s *store.Store, h store.Holder) {
	t.Helper()
	if _, err := s.Acquire(t.Context(), h.Account.Name, h); err != nil {
		t.Fatal(err)
	}
}

func release(t *testing.T, w *writer) {
	t.Helper()
	if err := w.s.Release(t.Context(), w.account, w.term); err != nil {
		t.Fatal(err)
	}
}

func onlyAccount(t *testing.T, s *store.Store) store.AccountRow {
	t.Helper()
	accounts, err := s.Accounts(t.Context())
	if err != nil || len(accounts) != 1 {
		t.Fatalf("got accounts %v, %v, want 1", accounts, err)
	}
	return accounts[0]
}

func recordLastSeen(t *testing.T, w *writer, at time.Time) {
	t.Helper()
	if err := w.s.RecordLastSeen(t.Context(), []store.LastSeen{{Account: w.account, Term: w.term, At: at}}); err != nil {
		t.Fatal(err)
	}
}

func beginSnapshot(t *testing.T, w *writer) {
	t.Helper()
	if err := w.s.BeginSnapshot(t.Context(), w.account, w.term, feedOf(pods)); err != nil {
		t.Fatal(err)
	}
}
