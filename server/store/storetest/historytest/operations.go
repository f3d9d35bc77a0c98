package historytest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Operations are tests that store operations and read them.
var Operations = map[string]func(*testing.T, *store.Store){
	"similar names": testSimilarNames,
	"an operation is read back as it was stored, before and after its end": func(t *testing.T, s *store.Store) {
		want := storetest.Operation(1)
		storetest.BeginOperation(t, s, want)
		storetest.CheckOperation(t, s, want)
		want.State = vedette.Failed
		want.Status = 404
		want.Reason = "NotFound"
		want.Message = `deployments.apps "web" not found 🙂`
		want.Agent = "agent-2"
		want.Sent = want.Accepted.Add(time.Millisecond)
		want.Ended = want.Accepted.Add(time.Second)
		want.Kind = "Deployment.apps"
		want.Namespace = "shop"
		want.Name = "web"
		want.Undoes = storetest.Operation(0).ID
		want.Changes = []vedette.ObjectChange{{Key: storetest.Web, Before: "7", After: "9",
			Patch:          json.RawMessage(`[{"op":"add","path":"/a","value":"é\u0000"}]`),
			TemplateBefore: "a", TemplateAfter: "b", Note: "cut"}}
		endOperations(t, s, want)
		storetest.CheckOperation(t, s, want)
	},
	"an operation that was not begun is stored as a whole": func(t *testing.T, s *store.Store) {
		want := storetest.Ended(storetest.Operation(1), vedette.Done)
		endOperations(t, s, want)
		storetest.CheckOperation(t, s, want)
	},
	"an operation keeps its first outcome": func(t *testing.T, s *store.Store) {
		o := storetest.Operation(1)
		storetest.BeginOperation(t, s, o)
		if n, err := s.MarkOperationsLost(t.Context(), o.Server, "the server was restarted", o.Accepted); err != nil || n != 1 {
			t.Fatalf("got %d lost operations, %v, want 1", n, err)
		}
		endOperations(t, s, storetest.Ended(o, vedette.Done))
		got, err := s.Operation(t.Context(), o.ID)
		if err != nil || got.State != vedette.Lost || got.Message != "the server was restarted" || got.Status != 504 || got.Reason != "Lost" ||
			!got.Ended.Equal(o.Accepted) {
			t.Errorf("got %+v, %v, want it lost because of the restart", got, err)
		}
		first := storetest.Ended(storetest.Operation(2), vedette.Done)
		endOperations(t, s, first, storetest.Ended(first, vedette.Failed))
		storetest.CheckOperation(t, s, first)
	},
	"an operation is accepted once": func(t *testing.T, s *store.Store) {
		errs := make(chan error)
		for range 6 {
			go func() { errs <- s.BeginOperation(context.WithoutCancel(t.Context()), storetest.Operation(1)) }()
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
		var rows []history.Operation
		for i := range 600 {
			o := storetest.Operation(i)
			if i%3 == 0 {
				storetest.BeginOperation(t, s, o)
			}
			rows = append(rows, storetest.Ended(o, vedette.Done))
		}
		endOperations(t, s, rows...)
		endOperations(t, s)
		got, _ := operationPages(t, s, history.Query{State: vedette.Done, Limit: 77})
		if len(got) != len(rows) {
			t.Errorf("got %d ended operations, want %d", len(got), len(rows))
		}
	},
	"concurrent outcomes in different orders": func(t *testing.T, s *store.Store) {
		var rows []history.Operation
		for i := range 50 {
			storetest.BeginOperation(t, s, storetest.Operation(i))
			rows = append(rows, storetest.Ended(storetest.Operation(i), vedette.Done))
		}
		var wg sync.WaitGroup
		for i := range 4 {
			rotated := append(append([]history.Operation{}, rows[i*10:]...), rows[:i*10]...)
			wg.Go(func() {
				if err := s.EndOperations(t.Context(), rotated); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	},
	"long text is truncated at the end of a character": func(t *testing.T, s *store.Store) {
		o := storetest.Ended(storetest.Operation(1), vedette.Failed)
		o.Message = "x" + strings.Repeat("é", 4000) + "\x00\xff"
		o.Target = strings.Repeat("t\x00", 9000)
		o.Requester.User = strings.Repeat("ü", 400)
		o.Origin, o.Reason = strings.Repeat("🙂", 400), strings.Repeat("r", 400)
		endOperations(t, s, o)
		got, err := s.Operation(t.Context(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Message != "x"+strings.Repeat("é", 2047) {
			t.Errorf("got a message of %d bytes, want 4095", len(got.Message))
		}
		for _, text := range []string{got.Message, got.Target, got.Requester.User, got.Origin, got.Reason} {
			if !utf8.ValidString(text) || text == "" {
				t.Errorf("got %q, want text in valid UTF-8", text)
			}
		}
		if found, _ := operationPages(t, s, history.Query{Origin: got.Origin}); len(found) != 1 {
			t.Errorf("got %d operations by origin, want 1", len(found))
		}
		if found, _ := operationPages(t, s, history.Query{Origin: o.Origin}); len(found) != 0 {
			t.Errorf("got %d operations by an origin that no row can have, want none", len(found))
		}
	},
	"pages have the newest first": func(t *testing.T, s *store.Store) {
		var want []string
		for i := range 25 {
			storetest.BeginOperation(t, s, storetest.Operation(i))
			want = append([]string{string(storetest.Operation(i).ID)}, want...)
		}
		got, pages := operationPages(t, s, history.Query{Limit: 5})
		storetest.Equal(t, "ids", got, want)
		if pages != 5 {
			t.Errorf("got %d pages, want 5", pages)
		}
		for _, q := range []history.Query{{Limit: -1}, {Limit: 5001}, {After: strings.Repeat("x", 27)}, {After: "\x00"}} {
			if _, _, err := s.Operations(t.Context(), q); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%+v: got %v, want an error of kind %s", q, err, vedette.Invalid)
			}
		}
	},
	"each filter": func(t *testing.T, s *store.Store) {
		for i := range 8 {
			o := storetest.Operation(i)
			o.Account = vedette.AccountName(fmt.Sprint("account-", i%3))
			o.Agent = vedette.AgentID(fmt.Sprint("agent-", i%2))
			o.Origin = fmt.Sprint("task ", i/4)
			if i%4 == 0 {
				o.Verb = vedette.VerbScale
			}
			if i%4 == 2 {
				o.Requester.User = "eve"
			}
			if i%4 == 3 {
				o.Kind = "Deployment.apps"
				o.Namespace = fmt.Sprint("shop-", i)
				o.Name = "api"
			}
			if storetest.BeginOperation(t, s, o); i == 5 {
				endOperations(t, s, storetest.Ended(o, vedette.Failed))
			}
		}
		for want, q := range map[string]history.Query{
			"[7 6 5 4 3 2 1 0]": {},
			"[6 3 0]":           {Accounts: []vedette.AccountName{"account-0"}},
			"[7 6 4 3 1 0]":     {Accounts: []vedette.AccountName{"account-0", "account-1", "nobody"}},
			"[]":                {Accounts: []vedette.AccountName{}},
			"[7 5 3 1]":         {Agent: "agent-1"},
			"[5]":               {State: vedette.Failed},
			"[7 6 4 3 2 1 0]":   {State: history.Pending},
			"[4 0]":             {Verb: vedette.VerbScale},
			"[7 6 5 4]":         {Origin: "task 1"},
			"[7 4]":             {Origin: "task 1", Accounts: []vedette.AccountName{"account-1"}},
			"[7 6 5]":           {Since: storetest.Operation(5).Accepted},
			"[1 0]":             {Until: storetest.Operation(2).Accepted},
			"[3 2]":             {Since: storetest.Operation(2).Accepted, Until: storetest.Operation(4).Accepted},
			"[5 ]":              {EndedSince: storetest.Operation(5).Accepted.Add(time.Minute)},
			"[6 2]":             {User: "eve"},
			"[7 3]":             {Name: "api", Kinds: []string{"Deployment.apps", "deployment"}},
			"[7]":               {Name: "api", Namespace: "shop-7"},
			"[3]":               {Namespace: "shop-3", Kinds: []string{"Deployment.apps"}},
			"[ ]":               {Name: "api", Kinds: []string{"Service"}},
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
			if got := fmt.Sprint(numbers); got != strings.ReplaceAll(want, " ]", "]") {
				t.Errorf("%+v: got %s, want %s", q, got, want)
			}
		}
	},
	"pages are in the order of acceptance, whatever ids callers choose": func(t *testing.T, s *store.Store) {
		for i, id := range []string{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "00000000000000000000000000", "01J00000000000000000000005"} {
			o := storetest.Operation(i)
			o.ID = vedette.OperationID(id)
			storetest.BeginOperation(t, s, o)
		}
		want := []string{"01J00000000000000000000005", "00000000000000000000000000", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"}
		got, _ := operationPages(t, s, history.Query{Limit: 1})
		storetest.Equal(t, "ids", got, want)
	},
	"pages stay while operations are added": func(t *testing.T, s *store.Store) {
		for i := range 6 {
			o := storetest.Operation(i)
			o.Accepted = storetest.Operation(i / 2 * 2).Accepted // two at a time
			storetest.BeginOperation(t, s, o)
		}
		var got []string
		for cursor := ""; ; {
			rows, next, err := s.Operations(t.Context(), history.Query{Limit: 1, After: cursor})
			if err != nil || len(rows) != 1 {
				t.Fatalf("got %+v, %v, want one", rows, err)
			}
			got = append(got, string(rows[0].ID[25:]))
			storetest.BeginOperation(t, s, storetest.Operation(10+len(got)))
			if cursor = next; next == "" {
				break
			}
		}
		storetest.Equal(t, "ids", got, []string{"5", "4", "3", "2", "1", "0"})
	},
	"operations that changed several objects are found by each": func(t *testing.T, s *store.Store) {
		prune := storetest.Ended(storetest.Operation(1), vedette.Done)
		prune.Objects = []vedette.Key{storetest.Web, {Kind: storetest.Web.Kind, Namespace: "shop", Name: "api"}, storetest.Web}
		prune.Changes = []vedette.ObjectChange{{Key: storetest.Web, Before: "3"}}
		apply := storetest.Ended(storetest.Operation(2), vedette.Done)
		apply.Kind = storetest.Web.Kind.String()
		apply.Namespace = storetest.Web.Namespace
		apply.Name = storetest.Web.Name
		endOperations(t, s, prune, apply)
		for want, q := range map[string]history.Query{
			"2 1":  {Name: "web", Namespace: "shop", Kinds: []string{"Deployment.apps"}},
			"1":    {Name: "api"},
			"2 1 ": {Namespace: "shop", Limit: 1},
			"":     {Name: "web", Namespace: "other"},
			"1 ":   {Namespace: "shop", Until: apply.Accepted},
		} {
			ids, _ := operationPages(t, s, q)
			for i := range ids {
				ids[i] = ids[i][25:]
			}
			if got := strings.Join(ids, " "); got != strings.TrimSuffix(want, " ") {
				t.Errorf("%+v: got %s, want %s", q, got, want)
			}
		}
		if got, err := s.Operation(t.Context(), prune.ID); err != nil || len(got.Changes) != 1 || got.Changes[0].Before != "3" {
			t.Errorf("got %+v, %v, want the change", got, err)
		}
	},
	"the change that an undo takes back": func(t *testing.T, s *store.Store) {
		for i, template := range []string{"a", "b", "b", "c", "b", "b"} { // the third and the last changed something else
			o := storetest.Ended(storetest.Operation(i), vedette.Done)
			o.Kind = storetest.Web.Kind.String()
			o.Namespace = storetest.Web.Namespace
			o.Name = storetest.Web.Name
			before := ""
			if i > 0 {
				before = []string{"a", "b", "b", "c", "b"}[i-1]
			}
			o.Changes = []vedette.ObjectChange{{Key: storetest.Web, TemplateBefore: before, TemplateAfter: template}}
			endOperations(t, s, o)
		}
		other := storetest.Web
		other.Namespace = "other"
		for _, test := range []struct {
			account       vedette.AccountName
			key           vedette.Key
			before, after string
			want          vedette.OperationID
		}{
			{"prod", storetest.Web, "b", "c", storetest.Operation(4).ID},
			{"prod", storetest.Web, "b", "a", storetest.Operation(1).ID}, // the others led from b to c, and back
			{"prod", storetest.Web, "b", "d", storetest.Operation(4).ID}, // nothing tells when it was d
			{"prod", storetest.Web, "c", "b", ""},                        // the last change made b
			{"prod", storetest.Web, "a", "d", ""},
			{"prod", storetest.Web, "d", "a", ""},
			{"prod", storetest.Web, "", "a", ""},
			{"prod", other, "b", "a", ""},
			{"dev", storetest.Web, "b", "a", ""},
		} {
			if got, err := s.UndoneOperation(t.Context(), test.account, test.key, test.before, test.after); err != nil || got != test.want {
				t.Errorf("%+v: got %s, %v", test, got, err)
			}
		}
	},
	"an operation that ends twice in one call is stored once": func(t *testing.T, s *store.Store) {
		first, again := storetest.Ended(storetest.Operation(1), vedette.Done), storetest.Ended(storetest.Operation(1), vedette.Done)
		first.Changes = []vedette.ObjectChange{{Key: storetest.Web, Before: "3"}}
		first.Objects = []vedette.Key{storetest.Web, {Kind: storetest.Web.Kind, Namespace: "shop", Name: "api"}}
		endOperations(t, s, first, again)
		first.Objects = nil // not read
		storetest.CheckOperation(t, s, first)
		other, more := storetest.Ended(storetest.Operation(2), vedette.Done), storetest.Ended(storetest.Operation(2), vedette.Done)
		other.Changes, more.Changes = first.Changes, []vedette.ObjectChange{{Key: storetest.Web, Before: "4"}}
		endOperations(t, s, other, more)
		storetest.CheckOperation(t, s, other)
	},
	"the size of the history": func(t *testing.T, s *store.Store) {
		if size, err := s.HistorySize(t.Context()); err != nil || size != (history.Size{}) {
			t.Errorf("got %+v, %v, want nothing", size, err)
		}
		small, large := storetest.Ended(storetest.Operation(1), vedette.Done), storetest.Ended(storetest.Operation(2), vedette.Done)
		storetest.BeginOperation(t, s, small)
		storetest.BeginOperation(t, s, large)
		large.Changes = []vedette.ObjectChange{{Key: storetest.Web, Patch: json.RawMessage(`["` + strings.Repeat("x", 10_000) + `"]`)}}
		begun, err := s.HistorySize(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		endOperations(t, s, small, large)
		size, err := s.HistorySize(t.Context())
		if err != nil || size.Entries != 2 || !size.Oldest.Equal(small.Accepted) || size.Bytes < begun.Bytes+10_000 || size.Bytes > begun.Bytes+20_000 { // MySQL takes whole pages
			t.Errorf("got %+v, %v after %+v, want the patch to count", size, err, begun)
		}
		n, bytes, err := s.PurgeOperations(t.Context(), large.Accepted.Add(time.Second), 10)
		if err != nil || n != 2 || bytes != size.Bytes {
			t.Errorf("purged %d with %d bytes, %v, want 2 with %d", n, bytes, err, size.Bytes)
		}
		if n, err := s.PurgeOrphans(t.Context(), 10); n != 0 || err != nil { // the purge left nothing
			t.Errorf("purged %d orphans, %v, want none", n, err)
		}
	},
	"the texts of changes count": func(t *testing.T, s *store.Store) {
		o, text := storetest.Ended(storetest.Operation(1), vedette.Done), strings.Repeat("<", 1000)
		for range 100 {
			o.Changes = append(o.Changes, vedette.ObjectChange{Key: vedette.Key{Kind: vedette.Kind{Group: text, Name: text}, Namespace: text,
				Name: text}, Before: text[:255]})
		}
		endOperations(t, s, o)
		size, err := s.HistorySize(t.Context())
		if err != nil || size.Bytes < 100*4255 {
			t.Errorf("got %+v, %v, want all texts to count", size, err)
		}
		if got, err := s.Operation(t.Context(), o.ID); err != nil || len(got.Changes) != 100 || got.Changes[99].Key.Name != text {
			t.Errorf("got %d changes, %v", len(got.Changes), err)
		}
	},
	"a pending operation moves to one other server": func(t *testing.T, s *store.Store) {
		o := storetest.Operation(1)
		storetest.BeginOperation(t, s, o)
		due := o.Deadline.Add(time.Minute)
		if moved, err := s.MoveOperation(t.Context(), o.ID, "another", "server-9", due); err != nil || moved {
			t.Errorf("from a server that does not have it: got %v, %v", moved, err)
		}
		if moved, err := s.MoveOperation(t.Context(), o.ID, o.Server, "server-9", due); err != nil || !moved {
			t.Errorf("got %v, %v", moved, err)
		}
		if moved, err := s.MoveOperation(t.Context(), o.ID, o.Server, "server-8", due); err != nil || moved {
			t.Errorf("a second time: got %v, %v", moved, err)
		}
		o.Server, o.Deadline = "server-9", due
		storetest.CheckOperation(t, s, o)
		ended := storetest.Ended(o, vedette.Done)
		endOperations(t, s, ended)
		if moved, err := s.MoveOperation(t.Context(), o.ID, o.Server, "server-8", due); err != nil || moved {
			t.Errorf("after its end: got %v, %v", moved, err)
		}
		storetest.CheckOperation(t, s, ended)
	},
	"a server ends its own operations as lost": func(t *testing.T, s *store.Store) {
		for i := range 6 {
			o := storetest.Operation(i)
			o.Server = vedette.ServerID(fmt.Sprint("server-", i%2))
			if storetest.BeginOperation(t, s, o); i == 4 {
				endOperations(t, s, storetest.Ended(o, vedette.Done))
			}
		}
		if n, err := s.MarkOperationsLost(t.Context(), "server-0", "restarted", time.Now()); err != nil || n != 2 {
			t.Errorf("got %d lost operations, %v, want 2", n, err)
		}
		if n, err := s.MarkOperationsLost(t.Context(), "server-0", "restarted", time.Now()); err != nil || n != 0 {
			t.Errorf("got %d operations lost again, %v, want none", n, err)
		}
		if pending, _ := operationPages(t, s, history.Query{State: history.Pending}); len(pending) != 3 {
			t.Errorf("got pending operations %v, want 3", pending)
		}
	},
	"overdue operations of any server end as lost": func(t *testing.T, s *store.Store) {
		now := time.Now()
		for i := range 6 {
			o := storetest.Operation(i)
			o.Server = vedette.ServerID(fmt.Sprint("server-", i%2))
			o.Deadline = now.Add(time.Duration(i-3) * time.Minute)
			if storetest.BeginOperation(t, s, o); i == 1 {
				endOperations(t, s, storetest.Ended(o, vedette.Done))
			}
		}
		for _, want := range []int{2, 0} {
			if n, err := s.ExpireOperations(t.Context(), now, "its server is gone", now); err != nil || n != want {
				t.Errorf("got %d lost operations, %v, want %d", n, err, want)
			}
		}
		got, err := s.Operation(t.Context(), storetest.Operation(2).ID)
		if err != nil || got.State != vedette.Lost || got.Status != 504 || got.Message != "its server is gone" {
			t.Errorf("got %+v, %v, want it lost", got, err)
		}
	},
	"the oldest of a verb are purged": func(t *testing.T, s *store.Store) {
		for i := range 10 {
			o := storetest.Operation(i)
			if o.Verb = vedette.VerbScale; i%2 == 0 {
				o.Verb = vedette.VerbGet
			}
			storetest.BeginOperation(t, s, o)
		}
		size, err := s.HistorySize(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if bytes, err := s.HistoryBytesOf(t.Context(), vedette.VerbGet); err != nil || bytes == 0 || bytes >= size.Bytes {
			t.Errorf("the reads have %d bytes, %v", bytes, err)
		}
		before := storetest.Operation(7).Accepted
		for _, want := range []int{3, 1, 0} {
			if n, bytes, err := s.PurgeOperationsOf(t.Context(), vedette.VerbGet, before, 3); err != nil || n != want || (bytes > 0) != (n > 0) {
				t.Errorf("got %d purged operations of %d bytes, %v, want %d", n, bytes, err, want)
			}
		}
		remaining, _ := operationPages(t, s, history.Query{})
		if len(remaining) != 6 {
			t.Errorf("got remaining operations %v, want all but the 4 oldest reads", remaining)
		}
	},
	"the oldest are purged first": func(t *testing.T, s *store.Store) {
		for i := range 10 {
			storetest.BeginOperation(t, s, storetest.Operation(i))
		}
		before := storetest.Operation(7).Accepted
		for _, want := range []int{4, 3, 0} {
			if n, _, err := s.PurgeOperations(t.Context(), before, 4); err != nil || n != want {
				t.Errorf("got %d purged operations, %v, want %d", n, err, want)
			}
		}
		remaining, _ := operationPages(t, s, history.Query{})
		if len(remaining) != 3 {
			t.Errorf("got remaining operations %v, want 3", remaining)
		}
		if _, err := s.Operation(t.Context(), storetest.Operation(0).ID); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("purged operation: got %v, want an error of kind %s", err, vedette.NotFound)
		}
	},
	"invalid ids are rejected": func(t *testing.T, s *store.Store) {
		for _, id := range []string{"", strings.Repeat("x", 27), "a\x00", "\xff"} {
			o := storetest.Operation(1)
			o.ID = vedette.OperationID(id)
			if err := s.BeginOperation(t.Context(), o); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("begin %q: got %v, want an error of kind %s", id, err, vedette.Invalid)
			}
			if err := s.EndOperations(t.Context(), []history.Operation{o}); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("end %q: got %v, want an error of kind %s", id, err, vedette.Invalid)
			}
			if _, err := s.Operation(t.Context(), o.ID); vedette.KindOf(err) != vedette.NotFound {
				t.Errorf("read %q: got %v, want an error of kind %s", id, err, vedette.NotFound)
			}
		}
	},
}

func endOperations(t *testing.T, s *store.Store, rows ...history.Operation) {
	t.Helper()
	if err := s.EndOperations(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

// operationPages returns the ids of all pages.
func operationPages(t *testing.T, s *store.Store, q history.Query) (ids []string, pages int) {
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

func testSimilarNames(t *testing.T, s *store.Store) {
	for i, name := range storetest.SimilarNames() {
		o := storetest.Operation(i)
		o.Account = vedette.AccountName(name)
		o.Agent = vedette.AgentID(name)
		o.Origin = name
		storetest.BeginOperation(t, s, o)
	}
	for _, name := range storetest.SimilarNames() {
		for what, q := range map[string]history.Query{
			"account": {Accounts: []vedette.AccountName{vedette.AccountName(name)}}, "agent": {Agent: vedette.AgentID(name)},
			"origin": {Origin: name},
		} {
			found, _, err := s.Operations(t.Context(), q)
			if err != nil || len(found) != 1 || string(found[0].Account) != name {
				t.Errorf("got %d operations of the %s %q, %v, want its own", len(found), what, name, err)
			}
		}
	}
}
