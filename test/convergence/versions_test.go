package convergence

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/upgrade"
)

// minOperations is how many operations are done with each pair of versions before one of them is replaced.
const minOperations = 25

// TestVersionsTakeTurns replaces the programs of the version before by those under test, and goes back, while objects change and
// operations run: first the server, then the agents. No change and no operation may be lost or done twice. With -db all it runs on
// all databases.
func TestVersionsTakeTurns(t *testing.T) {
	previous := buildPrevious(t)
	s := twoAgents
	s.programs = previous
	runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
		load := &workload{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(3, 3)), keepKinds: true}
		operations := w.newOperationLoad(w.accounts[0])
		ctx, stop := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { operations.run(ctx) })
		work.Go(func() { load.run(ctx) })
		for _, step := range []struct {
			name string
			dir  string
			of   []*process.Program
		}{
			{"a new server, old agents", programDir, []*process.Program{w.server}},
			{"a new server, new agents", programDir, []*process.Program{w.agents[0].Program, w.agents[1].Program}},
			{"an old server, new agents", previous, []*process.Program{w.server}},
			{"an old server, old agents", previous, []*process.Program{w.agents[0].Program, w.agents[1].Program}},
			{"new agents, an old server", programDir, []*process.Program{w.agents[0].Program, w.agents[1].Program}},
			{"all are new", programDir, []*process.Program{w.server}},
		} {
			operations.awaitDone(minOperations)
			t.Log(step.name)
			for _, p := range step.of {
				replaceProgram(p, step.dir)
			}
		}
		operations.awaitDone(minOperations)
		stop()
		work.Wait()
		took := w.awaitConvergence()
		ended := operations.verify()
		for _, o := range operations.operations {
			if result := operations.awaitResult(t.Context(), o); result.State == "" || result.State == "lost" {
				t.Errorf("%s ended as %q (%s), although all programs were stopped in order", o, result.State, result.Message)
			}
		}
		t.Logf("%d changes, operations %v; converged after %v", load.changes, ended, took)
	})
}

// TestServerGoesBackAfterAMigration starts the server of the version before with a database that a later one has migrated. The migration
// is a synthetic one, because the schema of both may be the same.
func TestServerGoesBackAfterAMigration(t *testing.T) {
	previous := buildPrevious(t)
	s := singleAgent
	s.programs = previous
	runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
		var known int64
		migrate := func(compatibleFrom string, statements ...string) {
			t.Helper()
			w.server.Stop()
			known = w.count(t.Context(), `SELECT MAX(version_id) FROM schema_version`)
			for _, statement := range append(statements,
				`INSERT INTO schema_compatibility (version, compatible_from) SELECT MAX(version_id) + 1, `+compatibleFrom+` FROM schema_version`,
				`INSERT INTO schema_version (version_id, is_applied) SELECT MAX(version_id) + 1, `+isApplied(w.db.name)+` FROM schema_version`) {
				if err := w.db.write(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
		}
		knownByPrevious := strconv.FormatInt(w.count(t.Context(), `SELECT MAX(version_id) FROM schema_version`), 10)
		replaceProgram(w.server, programDir) // brings the schema to the version that it knows
		w.createAndAwait("migrated")
		migrate(knownByPrevious, `ALTER TABLE accounts ADD COLUMN later INT NOT NULL DEFAULT 0`, `CREATE TABLE later (id INT NOT NULL PRIMARY KEY)`)
		for _, version := range []struct{ name, dir string }{{"by-the-old-server", previous}, {"by-the-new-server", programDir}} {
			logged := len(readLog(t, w.server.Log))
			replaceProgram(w.server, version.dir)
			w.createAndAwait(version.name)
			w.awaitConvergence()
			if log := readLog(t, w.server.Log)[logged:]; !strings.Contains(log, "a newer server has migrated the database") {
				t.Errorf("%s: the log does not say that the schema is newer", version.name)
			}
		}
		migrate("MAX(version_id) + 1")
		for _, dir := range []string{previous, programDir} {
			replaceProgram(w.server, dir)
			awaitExit(t, w.server)
			if tail := w.server.Process().Tail(); !strings.Contains(tail, "in a way that this one cannot use") || !strings.Contains(tail, "restore the backup from before the upgrade") {
				t.Errorf("got %s, want what to do", tail)
			}
		}
		if version := w.count(t.Context(), `SELECT MAX(version_id) FROM schema_version`); version != known+1 {
			t.Errorf("the refused servers changed the schema's version to %d", version)
		}
	})
}

// isApplied is what goose writes for a migration.
func isApplied(database string) string {
	if database == "postgres" {
		return "true"
	}
	return "1"
}

// buildPrevious returns the directory of the programs of the version before.
func buildPrevious(t *testing.T) string {
	t.Helper()
	version, err := upgrade.Previous()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := version.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// awaitExit waits until a program has ended by itself.
func awaitExit(t *testing.T, p *process.Program) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for p.Exited() == nil {
		sleep(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			t.Fatalf("%s continues with a schema that it cannot use", p.Path)
		}
	}
}

// replaceProgram stops a program as an upgrade does, and starts it from another directory.
func replaceProgram(p *process.Program, dir string) {
	p.Stop()
	p.Path = filepath.Join(dir, filepath.Base(p.Path))
	p.Start()
}

// awaitDone waits until more operations are done.
func (c *caller) awaitDone(more int) {
	c.w.t.Helper()
	want := c.done() + more
	if !c.w.eventually(2*time.Minute, func(context.Context) bool { return c.done() >= want }) {
		c.w.t.Fatalf("got %d operations that are done, want %d", c.done(), want)
	}
}

func (c *caller) done() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.operations {
		if o.outcome().State == "done" {
			n++
		}
	}
	return n
}

func readLog(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
