package registrytest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Accounts are tests that have the accounts.
var Accounts = map[string]func(*testing.T, *store.Store){
	"names that are rejected": testRejectedAccountNames, "similar names at the same moment": testAccountNamesAtTheSameMoment,
	"accounts are read by name, and those that changed are known": func(t *testing.T, s *store.Store) {
		for _, name := range []vedette.AccountName{"b", "a", "c"} {
			storetest.NewWriter(t, s, name, storetest.FeedOf(storetest.Pods))
		}
		position := s.ChangedAccounts(0).Mark
		rows, err := s.AccountsNamed(t.Context(), "c", "a", "nobody")
		if err != nil || len(rows) != 2 || rows[0].Name != "a" || rows[1].Name != "c" || rows[0].Holder != "agent-1" {
			t.Errorf("got %+v, %v, want a and c", rows, err)
		}
		storetest.Register(t, s, "d")
		servers, err := s.Servers(t.Context(), []vedette.AccountName{"a", "c", "d", "nobody"})
		if err != nil || len(servers) != 2 || servers["a"] != rows[0].Server || servers["c"] != rows[1].Server || servers["a"] == "" {
			t.Errorf("servers: got %v, %v, want those of a and c", servers, err)
		}
		if servers, err := s.Servers(t.Context(), nil); err != nil || len(servers) != 0 {
			t.Errorf("servers of no accounts: got %v, %v", servers, err)
		}
		if rows, err := s.OrphanedAccounts(t.Context()); err != nil || len(rows) != 1 || rows[0].Name != "d" {
			t.Errorf("accounts without agents: got %+v, %v, want d", rows, err)
		}
		w := storetest.Acquire(t, s, "b")
		mark := vedette.Mark("7")
		for _, step := range []struct {
			name    string
			do      func()
			changed bool
		}{
			{"live", func() {
				w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
			}, true},
			{"a mark", func() {
				w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
			}, false},
			{"an object", func() { w.Put(storetest.Object(storetest.Pods, "n", "a", "1")) }, false},
			{"failing", func() {
				w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedFailing,
					Message: "refused"}}})
			}, true},
			{"live again", func() {
				w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive}}})
			}, true},
		} {
			position = s.ChangedAccounts(position).Mark
			step.do()
			names := s.ChangedAccounts(position).Names
			if got := slices.Equal(names, []vedette.AccountName{"b"}); got != step.changed || !got && len(names) > 0 {
				t.Errorf("%s: got changed accounts %v, want b: %v", step.name, names, step.changed)
			}
		}
	},
	"the first synchronization of an account ends once, and only without feeds that wait": func(t *testing.T, s *store.Store) {
		query := func() registry.FirstSync {
			t.Helper()
			syncs, err := s.AccountSyncs(t.Context())
			row, rowErr := s.Account(t.Context(), "prod")
			if err != nil || rowErr != nil || len(syncs) != 1 || syncs[0].Account != "prod" || syncs[0].Term != row.Term || syncs[0].FirstSync != row.FirstSync {
				t.Fatalf("got %+v, %v and account %+v, %v, want the same of prod", syncs, err, row, rowErr)
			}
			named, err := s.AccountSyncs(t.Context(), "prod", "none")
			if other, otherErr := s.AccountSyncs(t.Context(), "none"); err != nil || otherErr != nil || !slices.Equal(named, syncs) || len(other) > 0 {
				t.Fatalf("got %+v, %v of named accounts and %+v, %v of one that does not exist", named, err, other, otherErr)
			}
			return row.FirstSync
		}
		mark := func(step string, term vedette.Term, complete, wantSettled, wantComplete bool) registry.FirstSync {
			t.Helper()
			before := s.AccountsVersion()
			if err := s.MarkSettled(t.Context(), "prod", term, complete); err != nil {
				t.Fatal(err)
			}
			got := query()
			if got.Settled.IsZero() == wantSettled || got.Complete.IsZero() == wantComplete {
				t.Errorf("%s: got %+v, want settled %t, complete %t", step, got, wantSettled, wantComplete)
			}
			if s.AccountsVersion() == before {
				t.Errorf("%s: the version of the accounts has not changed", step)
			}
			return got
		}
		storetest.Register(t, s, "prod")
		w := storetest.Acquire(t, s, "prod")
		mark("without feeds", w.Term, true, false, false)
		w.Declare(storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services))
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive}}})
		mark("a feed waits", w.Term, true, false, false)
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedDenied}}})
		mark("another agent's term", w.Term+1, true, false, false)
		settled := mark("settled", w.Term, false, true, false)
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedLive}}})
		complete := mark("complete", w.Term, true, true, true)
		if again := mark("again", w.Term, true, true, true); again != complete || !again.Settled.Equal(settled.Settled) {
			t.Errorf("got %+v, want %+v, settled at %v", again, complete, settled.Settled)
		}
		w = storetest.Acquire(t, s, "prod") // its feeds wait to be confirmed
		if got := query(); got != complete {
			t.Errorf("with another cacher: got %+v, want %+v", got, complete)
		}
		storetest.Retire(t, w)
		storetest.Register(t, s, "prod")
		if got := query(); got != (registry.FirstSync{}) {
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
		storetest.Register(t, s, "new") // without feeds
		storetest.NewWriter(t, s, "empty", storetest.FeedOf(storetest.Pods))
		w := storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services))
		w.Put(storetest.Object(storetest.Pods, "n", "a", "1"), storetest.Object(storetest.Pods, "n", "b", "1"),
			storetest.Object(storetest.Services, "n", "a", "1"))
		storetest.NewWriter(t, s, "other", storetest.FeedOf(storetest.Pods)).Put(storetest.Object(storetest.Pods, "n", "a", "1"))
		expect("stored", map[vedette.AccountName]int64{"empty": 0, "prod": 3, "other": 1})
		w.Put(storetest.Object(storetest.Pods, "n", "a", "2"), storetest.Object(storetest.Services, "n", "b", "2"))
		w.Commit(commit.Batch{Deletes: []commit.Deletion{{Key: storetest.Object(storetest.Pods, "n", "b", "1").Key, Version: "3"}}})
		expect("changed", map[vedette.AccountName]int64{"empty": 0, "prod": 3, "other": 1})
		w.Declare(storetest.FeedOf(storetest.Pods))
		expect("a feed is gone", map[vedette.AccountName]int64{"empty": 0, "prod": 1, "other": 1})
		storetest.Retire(t, w) // its data is still there
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
		w := storetest.NewWriter(t, s, "prod", storetest.FeedOf(pods))
		mark := vedette.Mark("9")
		w.Commit(commit.Batch{Upserts: []vedette.Object{storetest.Object(pods, "shop", "web", "7")},
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		storetest.Acquire(t, s, "prod")
		if feeds, err := s.Marks(t.Context(), "prod"); err != nil || feeds[0].Mark != "9" {
			t.Fatalf("same shape: got marks %+v, %v, want 9", feeds, err)
		}
		term, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "agent-2", Server: "server-1", Shape: "another"})
		if err != nil {
			t.Fatal(err)
		}
		w.Term = term
		feeds, err := s.Marks(t.Context(), "prod")
		if err != nil || feeds[0].Mark != "" || feeds[0].Objects != 1 {
			t.Errorf("got %+v, %v, want no mark and the object", feeds, err)
		}
		if changes := w.Put(storetest.Object(pods, "shop", "web", "7")); len(changes) != 1 {
			t.Errorf("got changes %v, want the object again", changes)
		}
	},
	"a second cluster under a name is rejected and changes nothing": func(t *testing.T, s *store.Store) {
		first := storetest.Register(t, s, "prod")
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
		storetest.Register(t, s, "prod")
		moved := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "uid-prod", Host: "https://new"}}
		if _, err := s.Register(t.Context(), moved); err != nil {
			t.Fatal(err)
		}
		storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "agent-1", Account: &moved})
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
			storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "agent-1", Account: &a})
		}
		if row := onlyAccount(t, s); row.Cluster.UID != "uid-prod" {
			t.Errorf("got %+v, want the uid", row)
		}
	},
	"registering an existing account does not change it": func(t *testing.T, s *store.Store) {
		mine := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u", Host: "https://prod", Version: "v1"},
			Namespaces: []string{"a"},
			Properties: vedette.Properties{Environment: "prod", Permissions: &vedette.Permissions{Read: []string{"dev"}, Write: []string{"ops"}}}}
		if _, err := s.Register(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "agent-1", Server: "server-1", Account: &mine})
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
		storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "agent-1", Account: &first})
		second := vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u", Version: "v2"},
			Properties: vedette.Properties{Environment: "test"}, Namespaces: []string{"b"}}
		storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "agent-2", Account: &second, KeepPermissions: true})
		want := second
		want.Properties.Permissions = first.Properties.Permissions
		if row := onlyAccount(t, s); !reflect.DeepEqual(row.Account, want) || row.PermittedBy != "agent-1" {
			t.Errorf("got %+v\nwant %+v by agent-1", row, want)
		}
		third := second
		third.Namespaces = nil
		storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "agent-2", Account: &third, KeepNamespaces: true})
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
		storetest.Register(t, s, "prod")
		first, second := storetest.Acquire(t, s, "prod"), storetest.Acquire(t, s, "prod")
		if second.Term <= first.Term {
			t.Fatalf("got terms %d and %d, want the second one higher", first.Term, second.Term)
		}
		storetest.Release(t, first)
		if row := onlyAccount(t, s); row.Holder != "agent-1" || row.Server != "server-1" || !row.Orphaned.IsZero() {
			t.Errorf("got %+v after a release with an old term, want the holder", row)
		}
		storetest.Release(t, second)
		if row := onlyAccount(t, s); row.Holder != "" || row.Server != "" || row.Orphaned.IsZero() {
			t.Errorf("got %+v after a release, want no holder", row)
		}
	},
	"a live feed of a former cacher is pending": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{
			{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive, Message: "slowly"},
			{Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedDenied, Message: "forbidden"}}})
		w = storetest.Acquire(t, s, "prod")
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.State != vedette.FeedPending || f.Message != "" {
			t.Errorf("got live feed %s %q, want pending", f.State, f.Message)
		}
		if f := storetest.FeedStatus(t, s, "prod",
			storetest.FeedOf(storetest.Services)); f.State != vedette.FeedDenied || f.Message != "forbidden" {
			t.Errorf("got denied feed %s %q, want it unchanged", f.State, f.Message)
		}
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive}}})
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.State != vedette.FeedLive {
			t.Errorf("got %s after the new cacher reported it, want live", f.State)
		}
	},
	"last seen applies to live feeds only": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive}}})
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
			if f.LastSeen.Equal(at) != (f.Feed.Kind == storetest.Pods) {
				t.Errorf("feed %s in state %s: got last seen %v, want %v for live feeds only", f.Feed, f.State, f.LastSeen, at)
			}
		}
	},
	"last seen is kept when a feed stops being live or a term ends": func(t *testing.T, s *store.Store) {
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		live := commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive},
			{Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedLive}}}
		for why, end := range map[string]func(t *testing.T, w *storetest.Writer){
			"failing": func(t *testing.T, w *storetest.Writer) {
				w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedFailing}}})
			},
			"listed":   func(t *testing.T, w *storetest.Writer) { storetest.BeginSnapshot(t, w) },
			"taken":    func(t *testing.T, w *storetest.Writer) { storetest.Acquire(t, s, w.Account) },
			"released": func(t *testing.T, w *storetest.Writer) { storetest.Release(t, w) },
			"started": func(t *testing.T, _ *storetest.Writer) {
				if err := s.ReleaseAll(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			"retired": func(t *testing.T, w *storetest.Writer) {
				storetest.Release(t, w)
				if _, err := s.RetireOrphan(t.Context(), w.Account, w.Term); err != nil {
					t.Fatal(err)
				}
				storetest.Register(t, s, w.Account)
			},
		} {
			w := storetest.NewWriter(t, s, vedette.AccountName(why))
			w.Commit(live)
			recordLastSeen(t, w, at)
			end(t, w)
			if f := storetest.FeedStatus(t, s, w.Account, storetest.FeedOf(storetest.Pods)); !f.LastSeen.Equal(at) {
				t.Errorf("%s: got last seen %v, want %v", why, f.LastSeen, at)
			}
		}
	},
	"what was complete is kept of feeds that fail": func(t *testing.T, s *store.Store) {
		w, mark := storetest.NewWriter(t, s, "prod"), vedette.Mark("7")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive, Mark: &mark}}})
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedFailing},
			{Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedFailing}}})
		at := time.Now().Add(-time.Hour).Truncate(time.Microsecond).UTC()
		for _, tt := range []struct {
			name string
			seen registry.LastSeen
			want time.Time
		}{
			{"nothing known", registry.LastSeen{}, time.Time{}},
			{"of another term", registry.LastSeen{Term: w.Term + 1, Complete: at}, time.Time{}},
			{"known", registry.LastSeen{Term: w.Term, Complete: at}, at},
			{"older", registry.LastSeen{Term: w.Term, Complete: at.Add(-time.Second)}, at},
			{"newer, and other feeds are live", registry.LastSeen{Term: w.Term, At: at.Add(time.Minute), Complete: at.Add(time.Second)},
				at.Add(time.Second)},
		} {
			tt.seen.Account = w.Account
			if err := s.RecordLastSeen(t.Context(), []registry.LastSeen{tt.seen}); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); !f.LastSeen.Equal(tt.want) {
				t.Errorf("%s: got last seen %v, want %v", tt.name, f.LastSeen, tt.want)
			}
			if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Services)); !f.LastSeen.IsZero() {
				t.Errorf("%s: got last seen %v of a feed that was never read", tt.name, f.LastSeen)
			}
		}
		storetest.Release(t, w)
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); !f.LastSeen.Equal(at.Add(time.Second)) {
			t.Errorf("got last seen %v without an agent, want %v", f.LastSeen, at.Add(time.Second))
		}
	},
	"the last freshness is told to readers": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		at := time.Now().Add(-time.Hour).Truncate(time.Microsecond).UTC()
		for _, hasEnded := range []bool{false, true} {
			mark := s.ChangedAccounts(0).Mark
			if err := s.RecordLastSeen(t.Context(), []registry.LastSeen{{Account: w.Account, Term: w.Term, At: at,
				HasEnded: hasEnded}}); err != nil {
				t.Fatal(err)
			}
			if changed := s.ChangedAccounts(mark).Names; (len(changed) > 0) != hasEnded {
				t.Errorf("ended: %v: got the changed accounts %v", hasEnded, changed)
			}
		}
	},
	"last seen of a former cacher is ignored": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		current := storetest.Acquire(t, s, "prod")
		current.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive}}})
		at := time.Now().Add(time.Hour)
		recordLastSeen(t, w, at)
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); !f.LastSeen.Before(at) {
			t.Errorf("feed: got last seen %v, want before %v", f.LastSeen, at)
		}
		if row := onlyAccount(t, s); !row.LastSeen.Before(at) {
			t.Errorf("account: got last seen %v, want before %v", row.LastSeen, at)
		}
	},
	"accounts follow the freshness of their server": testSharedFreshness,
	"their namespaces": testNamespaces,
	"an account that does not exist": func(t *testing.T, s *store.Store) {
		_, err := s.Acquire(t.Context(), "nobody", registry.CacherClaim{Agent: "a", Server: "s"})
		if !errors.Is(err, registry.ErrNoAccount) || vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("acquire: got %v, want %v", err, registry.ErrNoAccount)
		}
		if err := s.RemoveAccount(t.Context(), "nobody"); !errors.Is(err, registry.ErrNoAccount) {
			t.Errorf("remove: got %v, want %v", err, registry.ErrNoAccount)
		}
		if _, err := s.Commit(t.Context(), commit.Batch{Account: "nobody"}); !errors.Is(err, registry.ErrNoAccount) {
			t.Errorf("commit: got %v, want %v", err, registry.ErrNoAccount)
		}
	},
	"an orphan is removed with its data, unless an agent has served it since": func(t *testing.T, s *store.Store) {
		served := storetest.NewWriter(t, s, "served")
		orphan := storetest.NewWriter(t, s, "orphan")
		returned := storetest.NewWriter(t, s, "returned")
		for _, w := range []*storetest.Writer{served, orphan, returned} {
			w.Put(storetest.Object(storetest.Pods, "default", "a", "1"))
		}
		storetest.Release(t, orphan)
		storetest.Release(t, returned)
		storetest.Acquire(t, s, "returned")
		for _, w := range []*storetest.Writer{served, orphan, returned} {
			removed, err := s.RemoveOrphan(t.Context(), w.Account, w.Term)
			if err != nil || removed != (w == orphan) {
				t.Errorf("%s: got removed %v, %v, want %v", w.Account, removed, err, w == orphan)
			}
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), []string{"returned Pod default/a@1",
			"served Pod default/a@1"})
		if stats, err := s.Stats(t.Context()); err != nil || stats.Objects != 2 {
			t.Errorf("got %+v, %v, want 2 objects", stats, err)
		}
	},
	"a retired account is hidden until its cluster registers again": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Pods))
		mark := vedette.Mark("9")
		w.Commit(commit.Batch{Upserts: []vedette.Object{storetest.Object(storetest.Pods, "shop", "web", "7")},
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
		storetest.Retire(t, w)
		if accounts, err := s.Accounts(t.Context()); err != nil || len(accounts) != 0 {
			t.Errorf("got accounts %v, %v, want none", accounts, err)
		}
		if names, err := s.AccountNames(t.Context()); err != nil || len(names) != 0 {
			t.Errorf("got the names %q, %v, want none", names, err)
		}
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), nil)
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: w.Term}); !errors.Is(err, registry.ErrNoAccount) {
			t.Errorf("its last agent: got %v, want %v", err, registry.ErrNoAccount)
		}
		// Another cluster has the name in the meantime.
		if _, err := s.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "another"}}); err != nil {
			t.Fatal(err)
		}
		other := storetest.Acquire(t, s, "prod")
		storetest.Equal(t, "objects of the other", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), nil)
		storetest.Retire(t, other)

		storetest.Register(t, s, "prod")
		revived := storetest.Acquire(t, s, "prod")
		if revived.Term <= other.Term || revived.Term <= w.Term {
			t.Errorf("got term %d, want it higher than %d and %d", revived.Term, w.Term, other.Term)
		}
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), []string{"prod Pod shop/web@7"})
		if feeds, err := s.Marks(t.Context(), "prod"); err != nil || len(feeds) != 1 || feeds[0].Mark != "9" {
			t.Errorf("got marks %+v, %v, want 9", feeds, err)
		}
		if err := s.RemoveAccount(t.Context(), "prod"); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveAccount(t.Context(), "prod"); !errors.Is(err, registry.ErrNoAccount) {
			t.Errorf("got %v, want %v, because removing includes retired accounts", err, registry.ErrNoAccount)
		}
	},
}

func onlyAccount(t *testing.T, s *store.Store) registry.Account {
	t.Helper()
	accounts, err := s.Accounts(t.Context())
	if err != nil || len(accounts) != 1 {
		t.Fatalf("got accounts %v, %v, want 1", accounts, err)
	}
	return accounts[0]
}

func recordLastSeen(t *testing.T, w *storetest.Writer, at time.Time) {
	t.Helper()
	if err := w.Store.RecordLastSeen(t.Context(), []registry.LastSeen{{Account: w.Account, Term: w.Term, At: at}}); err != nil {
		t.Fatal(err)
	}
}

// testRejectedAccountNames registers names that are none, and names that Spinnaker's services take
// for an existing one.
func testRejectedAccountNames(t *testing.T, s *store.Store) {
	storetest.Register(t, s, "pad")
	storetest.Register(t, s, "Strict")
	for name, want := range map[vedette.AccountName]vedette.ErrorKind{
		"pad ": vedette.Invalid, " pad": vedette.Invalid, "pad\u00a0": vedette.Invalid, "pad\t": vedette.Invalid, "x,pad": vedette.Invalid,
		"pad;x": vedette.Invalid,
		"PAD":   vedette.Conflict, "Pad": vedette.Conflict, "pád": vedette.Conflict, "pa\u0301d": vedette.Conflict, "ｐａｄ": vedette.Conflict,
		"pad\u200b": vedette.Conflict, "strıct": vedette.Conflict, "STRİCT": vedette.Conflict, "\u017ftrict": vedette.Conflict,
	} {
		_, err := s.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "of another cluster"}})
		if vedette.KindOf(err) != want || err == nil {
			t.Errorf("got %v for the account %q, want an error of kind %s", err, name, want)
		}
	}
	if row := storetest.Register(t, s, "pad"); row.Name != "pad" {
		t.Errorf("got the account %q, want pad again", row.Name)
	}
}

// testAccountNamesAtTheSameMoment registers similar names at the same moment, as several agents do.
// One of them gets the account.
func testAccountNamesAtTheSameMoment(t *testing.T, s *store.Store) {
	for round := range 10 {
		names := []vedette.AccountName{"lab", "LAB", "Lab", "láb"}
		errs := make(chan error, len(names))
		for i, name := range names {
			go func() {
				_, err := s.Register(t.Context(), vedette.Account{Name: name + vedette.AccountName(strconv.Itoa(round)),
					Cluster: vedette.Cluster{UID: strconv.Itoa(i)}})
				errs <- err
			}()
		}
		registered := 0
		for range names {
			switch err := <-errs; {
			case err == nil:
				registered++
			case vedette.KindOf(err) != vedette.Conflict:
				t.Errorf("round %d: got %v, want a conflict", round, err)
			}
		}
		if registered != 1 {
			t.Errorf("round %d: got %d accounts with similar names, want 1", round, registered)
		}
	}
}

// testSharedFreshness lets two accounts follow their server, and one of them leave it again in each way there is.
func testSharedFreshness(t *testing.T, s *store.Store) {
	at := time.Now().Add(-time.Hour).Truncate(time.Microsecond).UTC()
	pods := storetest.FeedOf(storetest.Pods)
	newLive := func(account vedette.AccountName) *storetest.Writer {
		w, mark := storetest.NewWriter(t, s, account), vedette.Mark("7")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: pods, State: vedette.FeedLive, Mark: &mark}}})
		return w
	}
	share := func(minutes int, joining ...*storetest.Writer) {
		t.Helper()
		var all []registry.LastSeen
		for _, w := range joining {
			all = append(all, registry.LastSeen{Account: w.Account, Term: w.Term, At: at})
		}
		if err := s.RecordSharedFreshness(t.Context(), at.Add(time.Duration(minutes)*time.Minute), all); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, account vedette.AccountName, minutes int) {
		t.Helper()
		want := at.Add(time.Duration(minutes) * time.Minute)
		if f := storetest.FeedStatus(t, s, account, pods); !f.LastSeen.Equal(want) {
			t.Errorf("%s: got feed %s last seen %v, want %v", what, account, f.LastSeen, want)
		}
	}
	stays, leaves := newLive("stays"), newLive("leaves")
	share(0, stays, leaves)
	expect("joined", "leaves", 0)
	share(1)
	expect("all are as fresh", "leaves", 1)
	if row, err := s.Account(t.Context(), "leaves"); err != nil || row.LastSeen.Before(at.Add(time.Minute)) {
		t.Errorf("got account last seen %v, %v", row.LastSeen, err)
	}
	recordLastSeen(t, leaves, at.Add(time.Minute))
	share(2)
	expect("it is stored separately", "leaves", 1)
	share(2, leaves)
	expect("it joins again", "leaves", 2)
	recordLastSeen(t, &storetest.Writer{Store: s, Account: "leaves", Term: leaves.Term - 1}, at.Add(-time.Minute))
	expect("what an earlier term stores late counts no more", "leaves", 2)
	storetest.Acquire(t, s, "leaves")
	share(3)
	expect("another term does not follow", "leaves", 2)
	if err := s.ReleaseAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	share(4)
	expect("the server has ended", "stays", 3)
}
