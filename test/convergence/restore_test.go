package convergence

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/oracle"
)

// changesSinceBackup is how many objects exist only until the restore.
const changesSinceBackup = 40

// TestRestoreOfEtcd puts back the data of etcd while everything else goes on. An API server says
// nothing about it: a watch from a resourceVersion that is in its future is silent, and one that it
// has reached again continues with changes that are not the ones that are missing.
func TestRestoreOfEtcd(t *testing.T) {
	for name, tt := range map[string]struct {
		later int  // objects that are created before the agent can know of the restore, or, if negative, when it can
		stops bool // the agent does, for as long as the restore takes
	}{
		"the cluster is behind the mark":           {0, false},
		"the cluster has passed the mark again":    {2 * changesSinceBackup, false},
		"it passes the mark after the agent knows": {-2 * changesSinceBackup, false},
		"the agent is stopped meanwhile":           {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := singleAgent
			s.verify = 3600
			runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
				c, a := w.clusters[0], w.agents[0]
				backup := filepath.Join(t.TempDir(), "etcd")
				must(w.t, c.Backup(t.Context(), backup))
				w.create("lost", changesSinceBackup)
				w.awaitConvergence()
				a.api[c].Refuse()
				if tt.stops {
					a.Stop()
				}
				must(w.t, c.Restore(t.Context(), backup))
				w.create("later", tt.later)
				a.api[c].Heal()
				if tt.stops {
					a.Start()
				}
				w.create("last", -tt.later)
				t.Logf("converged %v after the restore", w.awaitConvergence())
				const query = `SELECT COALESCE(SUM(drift), 0) FROM feeds`
				if tt.later > 0 && !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return w.count(ctx, query) >= changesSinceBackup }) {
					t.Errorf("got %d drifted objects reported, want at least %d", w.count(t.Context(), query), changesSinceBackup)
				}
			})
		})
	}
}

// create creates n objects in the first cluster.
func (w *world) create(prefix string, n int) {
	w.t.Helper()
	for i := range max(n, 0) {
		name := fmt.Sprintf("%s-%d", prefix, i)
		o := configMap.make(rand.New(rand.NewPCG(2, uint64(i))), name)
		must(w.t, w.clusters[0].Create(w.t.Context(), configMap.list(namespaces[0]), o))
	}
}

// checkNoDrift fails the test if a verification has found anything in an account. Drift that only verifications
// heal is a defect.
func (w *world) checkNoDrift(a *account) {
	w.t.Helper()
	n := w.count(w.t.Context(), `SELECT COALESCE(SUM(f.drift), 0) FROM feeds f JOIN accounts a ON a.id = f.account_id WHERE a.name = '`+a.name+`'`)
	if n != 0 {
		w.t.Errorf("verifications of %s have found %d objects that differed from their cluster, want none", a.name, n)
	}
	for _, agent := range w.agentsOf(a) {
		text, err := os.ReadFile(agent.Log)
		must(w.t, err)
		for line := range strings.Lines(string(text)) {
			isFinding := strings.Contains(line, "the store differs from the cluster") || strings.Contains(line, "restored to an earlier state")
			if isFinding && strings.Contains(line, " account="+a.name+" ") {
				w.t.Errorf("a verification of %s has found something: %s", agent.id, line)
			}
		}
	}
}

// awaitVerified waits until all feeds were verified after this call.
func (w *world) awaitVerified() {
	w.t.Helper()
	var before map[oracle.FeedKey]int64
	var err error
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
		before, err = w.verifiedTimes(ctx)
		return err == nil
	}) {
		w.t.Fatalf("read when feeds were verified: %v", err)
	}
	var waiting []oracle.FeedKey
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
		waiting = nil
		var now map[oracle.FeedKey]int64
		now, err = w.verifiedTimes(ctx)
		for feed, at := range now {
			if at <= before[feed] {
				waiting = append(waiting, feed)
			}
		}
		return err == nil && len(waiting) == 0
	}) {
		w.t.Fatalf("feeds are not verified after %v: %v, error %v", convergenceTimeout, waiting, err)
	}
}

// verifiedTimes returns when each feed was verified last.
func (w *world) verifiedTimes(ctx context.Context) (map[oracle.FeedKey]int64, error) {
	times := map[oracle.FeedKey]int64{}
	err := w.forEachRow(ctx, `SELECT a.name, k.name, k.grp, f.namespace, f.verified FROM feeds f JOIN kinds k ON k.id = f.kind_id
		JOIN accounts a ON a.id = f.account_id`, func(rows *sql.Rows) error {
		var k oracle.FeedKey
		var group string
		var at int64
		err := rows.Scan(&k.Account, &k.Kind, &group, &k.Namespace, &at)
		k.Kind += "." + group
		times[k] = at
		return err
	})
	return times, err
}
