package servers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/programs"
	"github.com/vedette-io/vedette/test/upgrade"
)

// nextVersion is what servers of the next version call themselves.
const nextVersion = "v99.0.0"

// buildNext builds the server as if it were of the next version, and returns its path.
func buildNext(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	flags := []string{"-ldflags", "-s -w -X github.com/vedette-io/vedette/internal/version.version=" + nextVersion}
	if err := programs.BuildWith(t.Context(), dir, flags, "vedette-server"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "vedette-server")
}

// TestVersionsTakeTurns replaces servers one after the other by those of the next version, and goes back, while all accounts are written and
// read at all servers. Both versions run beside each other, and no operation is lost.
func TestVersionsTakeTurns(t *testing.T) {
	next := buildNext(t)
	onSharedDatabasesAtOnce(t, func(t *testing.T, url string) {
		f := newFleet(t, url, 3, 2)
		this := f.servers[0].Path
		var running sync.WaitGroup
		stop := make(chan struct{})
		var writers []*writer
		for _, account := range f.accounts {
			w := &writer{f: f, account: account, since: time.Now()}
			f.await("a first write to "+string(account), func() bool { w.write(); return w.done > 0 })
			writers = append(writers, w)
			running.Go(func() { w.run(stop) })
		}
		seen := map[string]bool{}
		for _, path := range []string{next, this} {
			for i, s := range f.servers {
				s.Stop()
				s.Path = path
				s.Start()
				f.awaitReady(i)
				f.await("each server to answer for all", func() bool { return f.allAnswer(seen) })
			}
		}
		close(stop)
		running.Wait()
		for _, w := range writers {
			f.await("a last write to "+string(w.account), func() bool { before := w.done; w.write(); return w.done > before })
			for i := range f.servers {
				w.read(i)
			}
			t.Logf("%s: %d writes, %d failed, longest time without a write %v", w.account, w.writes, w.failures,
				w.longest.Round(time.Millisecond))
		}
		if !seen["dev "+nextVersion] {
			t.Errorf("both versions did not run beside each other: %v", seen)
		}
		var lost struct{ Items []json.RawMessage }
		if status := f.request(0, http.MethodGet, "/vedette/v1/operations?state=lost", nil, &lost); status != http.StatusOK || len(lost.Items) > 0 {
			t.Errorf("%d: lost operations, although all servers were stopped in order: %s", status, lost.Items)
		}
	})
}

// allAnswer reports whether each server runs, and hears of the agents of all others. It notes which versions run.
func (f *fleet) allAnswer(seen map[string]bool) bool {
	var versions []string
	for i := range f.servers {
		var is struct{ Version string }
		var agents struct {
			Items  []json.RawMessage
			Silent []string
		}
		if f.request(i, http.MethodGet, "/vedette/v1/version", nil, &is) != http.StatusOK ||
			f.request(i, http.MethodGet, "/vedette/v1/agents", nil, &agents) != http.StatusOK || len(agents.Items) != 2*len(f.accounts) {
			return false
		}
		versions = append(versions, is.Version)
	}
	slices.Sort(versions)
	seen[strings.Join(slices.Compact(versions), " ")] = true
	return true
}

// program returns a server that is not started, with keys of its configuration.
func (in *installation) program(path, id, keys string) *process.Program {
	in.t.Helper()
	dir := in.t.TempDir()
	config := filepath.Join(dir, id+".yml")
	if err := os.WriteFile(config, []byte(fmt.Sprintf("dataDir: %s\nsql.url: %q\n%s\n", dir, in.url, keys)), 0o600); err != nil {
		in.t.Fatal(err)
	}
	return &process.Program{T: in.t, Name: id, Path: path, Args: []string{"--config", config}, Log: filepath.Join(dir, id+".log")}
}

// TestVersionBeforeUsesTheDatabaseAlone starts servers of the version before beside servers that share the database, and the other way round. All of
// one kind must end first. After one server of this version has used the database alone, the version before can use it again.
func TestVersionBeforeUsesTheDatabaseAlone(t *testing.T) {
	version, err := upgrade.Previous()
	if err != nil {
		t.Fatal(err)
	}
	before, err := version.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette-server"); err != nil {
		t.Fatal(err)
	}
	this := filepath.Join(dir, "vedette-server")
	onSharedDatabases(t, func(t *testing.T, url string) {
		in := newInstallation(t, url)
		const alone = "server.port: 0\ngrpc.server.port: 0\n"
		const shared = "server: {port: 0, peers: {port: 0, address: 127.0.0.1}, id: %s}\ngrpc.server.port: 0\nkubesvc.cluster: database\n"
		old := in.program(filepath.Join(before, "vedette-server"), "old", alone)
		one, two := in.program(this, "one", fmt.Sprintf(shared, "one")), in.program(this, "two", fmt.Sprintf(shared, "two"))
		again := in.program(this, "alone", alone)

		in.startAndAwait(old, "msg=ready")
		in.startAndAwait(one, "the database is used by another server, which does not share it")
		old.Stop()
		in.startAndAwait(one, "msg=ready")
		in.startAndAwait(two, "msg=ready")
		in.startAndAwait(old, "in a way that this one cannot use")
		in.startAndAwait(again, "the database is shared by other servers")
		one.Stop()
		two.Stop()
		in.startAndAwait(old, "in a way that this one cannot use")
		in.startAndAwait(again, "msg=ready")
		again.Stop()
		in.startAndAwait(old, "a newer server has migrated the database")
		in.awaitText(old, "msg=ready")
	})
}

// startAndAwait starts a program, and waits until it says something.
func (in *installation) startAndAwait(p *process.Program, text string) {
	in.t.Helper()
	if err := os.Remove(p.Log); err != nil && !os.IsNotExist(err) {
		in.t.Fatal(err)
	}
	p.Start()
	in.awaitText(p, text)
}

func (in *installation) awaitText(p *process.Program, text string) {
	in.t.Helper()
	var log []byte
	defer func() {
		if in.t.Failed() {
			in.t.Logf("log of %s:\n%s", p.Name, log)
		}
	}()
	in.await(p.Name+" to say "+text, func() bool {
		log, _ = os.ReadFile(p.Log) // there may be none yet
		return strings.Contains(string(log), text)
	})
}
