package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

func TestLiveChangesPrecedeOtherSnapshots(t *testing.T) {
	upsert := func(account vedette.AccountName, name string, mark vedette.Mark) Step {
		s := Step{Type: Upsert, Account: account, Mark: mark, Size: 100}
		s.Object.Name = name
		return s
	}
	for _, tt := range []struct {
		name  string
		steps []Step
		want  string
	}{
		{"a live change goes before another account's snapshot",
			[]Step{upsert("big", "x", ""), upsert("small", "y", "7")}, "batch small, batch big"},
		{"an account keeps its order",
			[]Step{upsert("a", "x", ""), {Type: Begin, Account: "a"}, upsert("a", "y", ""), {Type: Begin, Account: "b"}, upsert("b", "z", "7")},
			"begin b, batch b, batch a, begin a, batch a"},
		{"a heartbeat stays behind what came before it",
			[]Step{upsert("big", "x", ""), {Type: Heartbeat}, upsert("small", "y", "7")}, "batch small, batch big, heartbeat"},
		{"without a snapshot, the order is kept",
			[]Step{upsert("b", "x", "1"), upsert("a", "y", "2"), {Type: Declare, Account: "c"}}, "batch b, batch a, declare c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newTaskSet()
			for _, s := range tt.steps {
				w.add(s, 0)
			}
			var got []string
			for _, task := range w.prioritized() {
				got = append(got, taskName(task))
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func taskName(t *task) string {
	if t.batch != nil {
		return "batch " + string(t.batch.account)
	}
	names := map[StepType]string{Declare: "declare", Begin: "begin", Heartbeat: "heartbeat"}
	return strings.TrimSpace(fmt.Sprintf("%s %s", names[t.step.Type], t.step.Account))
}

// TestBatchHoldsVersions checks that a batch contains the version at which an object was deleted,
// and the version at which a snapshot was read even if its feed has advanced since.
func TestBatchHoldsVersions(t *testing.T) {
	b := newBatch("prod", 1)
	key := vedette.Key{Kind: pods.Kind, Namespace: "n", Name: "web"}
	for _, s := range []Step{
		{Type: Upsert, Feed: pods, Object: vedette.Object{Key: key, ResourceVersion: "3"}},
		{Type: End, Feed: pods, Mark: "5"},
		{Type: Delete, Feed: pods, Object: vedette.Object{Key: key}, Mark: "7"},
	} {
		b.add(s)
	}
	out := b.build()
	if len(out.Upserts) != 0 || !slices.Equal(out.Deletes, []commit.Deletion{{Key: key, Version: "7"}}) {
		t.Errorf("got upserts %v, deletes %v", out.Upserts, out.Deletes)
	}
	if u := out.Feeds[0]; u.SnapshotMark != "5" || *u.Mark != "7" || u.Synced.IsZero() {
		t.Errorf("feed: got %+v", u)
	}
}
