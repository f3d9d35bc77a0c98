package registrytest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// testNamespaces follows the Namespaces of two accounts, and checks that every change of them is
// announced, and no change of anything else.
func testNamespaces(t *testing.T, s *store.Store) {
	prod, test := storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Namespaces), storetest.FeedOf(storetest.Pods)),
		storetest.NewWriter(t, s, "test", storetest.FeedOf(storetest.Namespaces))
	storetest.NewWriter(t, s, "without", storetest.FeedOf(storetest.Pods))
	mark := s.ChangedAccounts(0).Mark
	for _, tt := range []struct {
		step          string
		do            func()
		changed, want string
	}{
		{"nothing", func() {}, "[]", "map[]"},
		{"three", func() {
			prod.Put(storetest.Object(storetest.Namespaces, "", "shop", "1"), storetest.Object(storetest.Namespaces, "", "default", "2"))
			test.Put(storetest.Object(storetest.Namespaces, "", "shop", "1"))
		}, "[prod test]", "map[prod:[default shop] test:[shop]]"},
		{"a Pod", func() { prod.Put(storetest.Object(storetest.Pods, "shop", "web-0", "3")) }, "[]", "map[prod:[default shop] test:[shop]]"},
		{"the same object again", func() { test.Put(storetest.Object(storetest.Namespaces, "", "shop", "1")) }, "[]",
			"map[prod:[default shop] test:[shop]]"},
		{"a deletion", func() {
			prod.Commit(commit.Batch{Deletes: storetest.Deletions(vedette.Key{Kind: storetest.Namespaces, Name: "default"})})
		}, "[prod]",
			"map[prod:[shop] test:[shop]]"},
		{"a kind that is not cached anymore", func() { test.Declare(storetest.FeedOf(storetest.Pods)) }, "[test]", "map[prod:[shop]]"},
		{"written through", func() {
			_, _, err := s.WriteThrough(t.Context(), "prod", prod.Term, storetest.Object(storetest.Namespaces, "", "fresh", "5"), nil)
			check(t, err)
		}, "[prod]", "map[prod:[fresh shop]]"},
		{"another agent", func() { storetest.Acquire(t, s, "test") }, "[test]", "map[prod:[fresh shop]]"},
		{"an account that is gone", func() { check(t, s.RemoveAccount(t.Context(), "prod")) }, "[prod]", "map[]"},
	} {
		tt.do()
		changes := s.ChangedAccounts(mark)
		changed := changes.Names
		mark = changes.Mark
		slices.Sort(changed)
		if got := fmt.Sprint(changed); got != tt.changed {
			t.Errorf("%s: got the changed accounts %s, want %s", tt.step, got, tt.changed)
		}
		all, err := s.Namespaces(t.Context())
		check(t, err)
		some, err := s.Namespaces(t.Context(), "prod", "nobody")
		check(t, err)
		if got := fmt.Sprint(all); got != tt.want || fmt.Sprint(some["prod"]) != fmt.Sprint(all["prod"]) || len(some) > 1 {
			t.Errorf("%s: got %s, and for one account %v, want %s", tt.step, got, some, tt.want)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
