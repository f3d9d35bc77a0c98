package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette"
)

// fixture is a store whose internals tests can replace, with an account whose Pods are declared.
type fixture struct {
	*Store
	t    *testing.T
	term vedette.Term
}

var podFeed = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureWith(t, Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
}

func newFixtureWith(t *testing.T, cfg Config) *fixture {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{Store: s, t: t}
	t.Cleanup(func() { _ = s.Close() })
	_, err = s.Register(context.Background(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}})
	w.must(err)
	w.term, err = s.Acquire(context.Background(), "prod", Holder{Agent: "a", Server: "s"})
	w.must(err)
	_, err = s.Declare(context.Background(), "prod", w.term, []DeclaredFeed{{Feed: podFeed,
		Resource: vedette.Resource{Kind: podFeed.Kind, Version: "v1", Plural: "pods", Namespaced: true}}}, nil)
	w.must(err)
	return w
}

func (w *fixture) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Error(err)
	}
}

func podAt(n, version int) vedette.Object {
	name := fmt.Sprintf("pod-%d", n)
	return vedette.Object{Key: vedette.Key{Kind: podFeed.Kind, Namespace: "shop", Name: name}, UID: "uid-" + name, ResourceVersion: fmt.Sprint(version), Body: []byte(`{"a":1}`)}
}

func podsAt(from, n, version int) (pods []vedette.Object) {
	for i := range n {
		pods = append(pods, podAt(from+i, version))
	}
	return pods
}

// commit commits pods and a mark.
func (w *fixture) commit(mark int, pods ...vedette.Object) []Change {
	at := vedette.Mark(fmt.Sprint(mark))
	changes, err := w.Commit(context.Background(), Batch{Account: "prod", Term: w.term, Upserts: pods, Feeds: []FeedUpdate{{Feed: podFeed, Mark: &at}}})
	w.must(err)
	return changes
}

func (w *fixture) writeThrough(o vedette.Object) {
	_, _, err := w.WriteThrough(context.Background(), "prod", w.term, o, nil)
	w.must(err)
}

func (w *fixture) feed() FeedStatus {
	feeds, err := w.Feeds(context.Background(), "prod")
	w.must(err)
	return feeds[0]
}
