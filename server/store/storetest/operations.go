package storetest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var operationTests = map[string]func(*testing.T, *store.Store){
	"an operation is read back as it was stored, before and after its end": func(t *testing.T, s *store.Store) {
		want := operation(1)
		beginOperation(t, s, want)
		checkOperation(t, s, want)
		want.State, want.Status, want.Reason, want.Message = vedette.Failed, 404, "NotFound", `deployments.apps "web" not found 🙂`
		want.Agent, want.Sent, want.Ended = "agent-2", want.Accepted.Add(time.Millisecond), want.Accepted.Add(time.Second)
		endOperations(t, s, want)
		checkOperation(t, s, want)
	},
	"an operation that was not begun is stored as a whole": func(t *testing.T, s *store.Store) {
		want := ended(operation(1), vedette.Done)
		endOperations(t, s, want)
		checkOperation(t, s, want)
	},
	"an operation keeps its first outcome": func(t *testing.T, s *store.Store) {
		o := operation(1)
		beginOperation(t, s, o)
		if n, err := s.MarkOperationsLost(t.Context(), o.Server, "the server was restarted", o.Accepted); err != nil || n != 1 {
			t.Fatalf("got %d lost operations, %v, want 1", n, err)
		}
		endOperations(t, s, ended(o, vedette.Done))
		got, err := s.Operation(t.Context(), o.ID)
		if err != nil || got.State != vedette.Lost || got.Message != "the server was restarted" || got.Status != 504 || got.Reason != "Lost" ||
			!got.Ended.Equal(o.Accepted) {
			t.Errorf("got %+v, %v, want it lost because of the restart", got, err)
		}
		first := ended(operation(2), vedette.Done)
		endOperations(t, s, first, ended(first, vedette.Failed))
		checkOperation(t, s, first)
	},
	"an operation is accepted once": func(t *testing.T, s *store.Store) {
		errs := make(chan error)
		for range 6 {
			go func() { errs <- s.BeginOperation(context.WithoutCancel(t.Context()), operation(1)) }()
		}
		accepted := 0
		for range 6 {
			switch err := <-errs; {
			case err == nil:
				accepted++
			case vedette.KindOf(err) != vedette.Conflict:
				t.Error(err)
			}
		}
		if accepted != 1 {
			t.Errorf("got %d accepted, want 1", accepted)
		}
	},
	"many outcomes at once": func(t *testing.T, s *store.Store) {
		var rows []store.OperationRow
		for i := range 600 {
			o := operation(i)
			if i%3 == 0 {
				beginOperation(t, s, o)
			}
			rows = append(rows, ended(o, vedette.Done))
		}
		endOperations(t, s, rows...)
		endOperations(t, s)
		got, _ := operationPages(t, s, store.OperationQuery{State: vedette.Done, Limit: 77})
		if len(got) != len(rows) {
			t.Errorf("got %d ended operations, want %d", len(got), len(rows))
		}
	},
	"concurrent outcomes in different orders": func(t *testing.T, s *store.Store) {
		var rows []store.OperationRow
		for i := range 50 {
			beginOperation(t, s, operation(i))
			rows = append(rows, ended(operation(i), vedette.Done))
		}
		var wg sync.WaitGroup
		for i := range 4 {
			rotated := append(append([]store.OperationRow{}, rows[i*10:]...), rows[:i*10]...)
			wg.Go(func() {
				if err := s.EndOperations(t.Context(), rotated); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	},
	"long text is truncated at the end of a character": func(t *testing.T, s *store.Store) {
		o := ended(operation(1), vedette.Failed)
		o.Message, o.Target, o.User = "x"+strings.Repeat("é", 4000)+"\x00\xff", strings.Repeat("t\x00", 9000), strings.Repeat("ü", 400)
		o.Origin, o.Reason = strings.Repeat("🙂", 400), strings.Repeat("r", 400)
		endOperations(t, s, o)
		got, err := s.Operation(t.Context(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Message != "x"+strings.Repeat("é", 2047) {
			t.Errorf("got a message of %d bytes, want 4095", len(got.Message))
		}
		for _, text := range []string{got.Message, got.Target, got.User, got.Origin, got.Reason} {
			if !utf8.ValidString(text) || text == "" {
				t.Errorf("got %q, want text in valid UTF-8", text)
			}
		}
		if found, _ := operationPages(t, s, store.OperationQuery{Origin: got.Origin}); len(found) != 1 {
			t.Errorf("got %d operations by origin, want 1", len(found))
		}
		if found, _ := operationPages(t, s, store.OperationQuery{Origin: o.Origin}); len(found) != 0 {
			t.Errorf("got %d operations by an origin that no row can have, want none", len(found))
		}
	},
	"pages have the newest first": func(t *testing.T, s *store.Store) {
		var want []string
		for i := range 25 {
			beginOperation(t, s, operation(i))
			want = append([]string{string(operation(i).ID)}, want...)
		}
		got, pages := operationPages(t, s, store.OperationQuery{Limit: 5})
		equal(t, "ids", got, want)
		if pages != 5 {
			t.Errorf("got %d pages, want 5", pages)
		}
		for _, q := range []store.OperationQuery{{Limit: -1}, {Limit: 5001}, {After: strings.Repeat("x", 27)}, {After: "\x00"}} {
			if _, _, err := s.Operations(t.Context(), q); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%+v: got %v, want an error of kind %s", q, err, vedette.Invalid)
			}
		}
	},
	"each filter": func(t *testing.T, s *store.Store) {
		for i := range 8 {
			o := operation(i)
			o.Account = vedette.AccountName(fmt.Sprint("account-", i%3))
			o.Agent = vedette.AgentID(fmt.Sprint("agent-", i%2))
			o.Origin = fmt.Sprint("task ", i/4)
			if i%4 == 0 {
				o.Verb = vedette.VerbScale
			}
			if beginOperation(t, s, o); i == 5 {
				endOperations(t, s, ended(o, vedette.Failed))
			}
		}
		for want, q := range map[string]store.OperationQuery{
			"[7 6 5 4 3 2 1 0]": {},
			"[6 3 0]":           {Accounts: []vedette.AccountName{"account-0"}},
			"[7 6 4 3 1 0]":     {Accounts: []vedette.AccountName{"account-0", "account-1", "nobody"}},
			"[]":                {Accounts: []vedette.AccountName{}},
			"[7 5 3 1]":         {Agent: "agent-1"},
			"[5]":               {State: vedette.Failed},
			"[7 6 4 3 2 1 0]":   {State: store.Pending},
			"[4 0]":             {Verb: vedette.VerbScale},
			"[7 6 5 4]":         {Origin: "task 1"},
			"[7 4]":             {Origin: "task 1", Accounts: []vedette.AccountName{"account-1"}},
		} {
			found, _ := operationPages(t, s, q)
			numbers := []int{}
			for _, id := range found {
				var n int
				if _, err := fmt.Sscanf(id, "01J%d", &n); err != nil {
					t.Fatal(err)
				}
				numbers = append(numbers, n)
			}
			if got := fmt.Sprint(numbers); got != want {
				t.Errorf("%+v: got %s, want %s", q, got, want)
			}
		}
	},
	"a server ends its own operations as lost": func(t *testing.T, s *store.Store) {
		for i := range 6 {
			o := operation(i)
			o.Server = vedette.ServerID(fmt.Sprint("server-", i%2))
			if beginOperation(t, s, o); i == 4 {
				endOperations(t, s, ended(o, vedette.Done))
			}
		}
		if n, err := s.MarkOperationsLost(t.Context(), "server-0", "restarted", time.Now()); err != nil || n != 2 {
			t.Errorf("got %d lost operations, %v, want 2", n, err)
		}
		if n, err := s.MarkOperationsLost(t.Context(), "server-0", "restarted", time.Now()); err != nil || n != 0 {
			t.Errorf("got %d operations lost again, %v, want none", n, err)
		}
		if pending, _ := operationPages(t, s, store.OperationQuery{State: store.Pending}); len(pending) != 3 {
			t.Errorf("got pending operations %v, want 3", pending)
		}
	},
	"overdue operations of any server end as lost": func(t *testing.T, s *store.Store) {
		now := time.Now()
		for i := range 6 {
			o := operation(i)
			o.Server = vedette.ServerID(fmt.Sprint("server-", i%2))
			o.Deadline = now.Add(time.Duration(i-3) * time.Minute)
			if beginOperation(t, s, o); i == 1 {
				endOperations(t, s, ended(o, vedette.Done))
			}
		}
		for _, want := range []int{2, 0} {
			if n, err := s.ExpireOperations(t.Context(), now, "its server is gone", now); err != nil || n != want {
				t.Errorf("got %d lost operations, %v, want %d", n, err, want)
			}
		}
		got, err := s.Operation(t.Context(), operation(2).ID)
		if err != nil || got.State != vedette.Lost || got.Status != 504 || got.Message != "its server is gone" {
			t.Errorf("got %+v, %v, want it lost", got, err)
		}
	},
	"the oldest are purged first": func(t *testing.T, s *store.Store) {
		for i := range 10 {
			beginOperation(t, s, operation(i))
		}
		before := operation(7).Accepted
		for _, want := range []int{4, 3, 0} {
			if n, err := s.PurgeOperations(t.Context(), before, 4); err != nil || n != want {
				t.Errorf("got %d purged operations, %v, want %d", n, err, want)
			}
		}
		remaining, _ := operationPages(t, s, store.OperationQuery{})
		if len(remaining) != 3 {
			t.Errorf("got remaining operations %v, want 3", remaining)
		}
		if _, err := s.Operation(t.Context(), operation(0).ID); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("purged operation: got %v, want an error of kind %s", err, vedette.NotFound)
		}
	},
	"invalid ids are rejected": func(t *testing.T, s *store.Store) {
		for _, id := range []string{"", strings.Repeat("x", 27), "a\x00", "\xff"} {
			o := operation(1)
			o.ID = vedette.OperationID(id)
			if err := s.BeginOperation(t.Context(), o); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("begin %q: got %v, want an error of kind %s", id, err, vedette.Invalid)
			}
			if err := s.EndOperations(t.Context(), []store.OperationRow{o}); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("end %q: got %v, want an error of kind %s", id, err, vedette.Invalid)
			}
			if _, err := s.Operation(t.Context(), o.ID); vedette.KindOf(err) != vedette.NotFound {
				t.Errorf("read %q: got %v, want an error of kind %s", id, err, vedette.NotFound)
			}
		}
	},
}

// operation returns a pending operation; operations with higher numbers are newer.
func operation(n int) store.OperationRow {
	return store.OperationRow{
		ID: vedette.OperationID(fmt.Sprintf("01J%023d", n)), Account: "prod", Agent: "agent-1", Server: "server-1", Verb: vedette.VerbApply,
		DryRun: n%2 == 1,
		Target: "Deployment shop/web", User: "ann@example.org", Origin: "task 01J", State: store.Pending,
		Accepted: time.UnixMicro(1_700_000_000_000_000 + int64(n)).UTC(),
	}
}

func ended(o store.OperationRow, state vedette.OutcomeState) store.OperationRow {
	o.State, o.Status, o.Sent, o.Ended = state, 200, o.Accepted.Add(time.Microsecond), o.Accepted.Add(time.Minute)
	return o
}

func beginOperation(t *testing.T, s *store.Store, o store.OperationRow) {
	t.Helper()
	if err := s.BeginOperation(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func endOperations(t *testing.T, s *store.Store, rows ...store.OperationRow) {
	t.Helper()
	if err := s.EndOperations(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

func checkOperation(t *testing.T, s *store.Store, want store.OperationRow) {
	t.Helper()
	if got, err := s.Operation(t.Context(), want.ID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// operationPages returns the ids of all pages.
func operationPages(t *testing.T, s *store.Store, q store.OperationQuery) (ids []string, pages int) {
	t.Helper()
	for {
		rows, next, err := s.Operations(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rows {
			ids = append(ids, string(o.ID))
		}
		pages++
		if next == "" {
			return ids, pages
		}
		q.After = next
	}
}
