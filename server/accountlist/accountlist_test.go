package accountlist_test

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestListsShareWhatHasNotChanged follows accounts that come, change and leave. Lists before stay as they are.
func TestListsShareWhatHasNotChanged(t *testing.T) {
	w := readtest.New(t)
	w.Account("a", "pods")
	w.Account("b", "pods")
	c := accountlist.NewCache(w.Store)
	current := func() *accountlist.List {
		t.Helper()
		l, err := c.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := current()
	if again := current(); !again.Equal(first) || first.Len() != 2 {
		t.Fatalf("got %d accounts and equal lists: %v, want the same 2", first.Len(), again.Equal(first))
	}
	w.Account("c", "pods")
	second := current()
	if second.Equal(first) || second.Row("c") == nil || second.Row("a") != first.Row("a") {
		t.Error("after an account came: want another list with it and the same row of another account")
	}
	if err := w.Store.RemoveAccount(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	third := current()
	for _, tt := range []struct {
		list *accountlist.List
		has  map[vedette.AccountName]bool
	}{
		{first, map[vedette.AccountName]bool{"a": true, "b": true, "c": false}},
		{second, map[vedette.AccountName]bool{"a": true, "b": true, "c": true}},
		{third, map[vedette.AccountName]bool{"a": false, "b": true, "c": true}},
	} {
		for name, want := range tt.has {
			if got := tt.list.Row(name) != nil; got != want {
				t.Errorf("a list of %d accounts has %s: %v, want %v", tt.list.Len(), name, got, want)
			}
		}
	}
}
