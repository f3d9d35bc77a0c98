package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette/test/ports"
)

// Galera is a cluster of three MariaDB servers that replicate synchronously, each on ports of its own.
type Galera struct {
	Nodes []*Server

	t       testing.TB
	created atomic.Int64
}

// galeraNodes is the smallest number of nodes of which one may fail.
const galeraNodes = 3

// GaleraSettings are what each node needs besides its addresses; docs/scaling.md has the same.
var GaleraSettings = []string{"binlog-format=ROW", "default-storage-engine=InnoDB", "innodb-autoinc-lock-mode=2", "wsrep-on=ON",
	"wsrep-slave-threads=4"}

// StartGalera starts a cluster, which is removed when the test ends. The test may kill its nodes.
func StartGalera(t testing.TB, options Options) *Galera {
	t.Helper()
	g := &Galera{t: t}
	if err := g.start(options); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *Galera) start(options Options) error {
	library, err := findForSeveralMachines("/usr/lib/galera/libgalera_smm.so", "/usr/lib/*/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")
	if err != nil {
		return err
	}
	if os.Getenv(mysqldVariable) != "" {
		return fmt.Errorf("%s names a MySQL server, which has no Galera: unset it", mysqldVariable)
	}
	// All nodes begin with the same files, so that none has to copy them from another one.
	template, err := startMariaDB(g.t, options)
	if err != nil {
		return err
	}
	g.t.Cleanup(func() {
		if err := template.remove(); err != nil {
			g.t.Error(err)
		}
	})
	template.Stop()
	addresses := make([]string, galeraNodes)
	for i := range addresses {
		port, err := ports.Reserve()
		if err != nil {
			return err
		}
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	for i := range galeraNodes {
		node, err := newGaleraNode(g.t, template, library, addresses, i)
		if err != nil {
			return err
		}
		g.t.Cleanup(func() {
			if err := node.remove(); err != nil {
				g.t.Error(err)
			}
		})
		g.Nodes = append(g.Nodes, node)
		if i > 0 {
			continue
		}
		// The first node makes the others' files, so that InnoDB contains which transactions they have.
		if err := node.startWith(newCluster); err != nil {
			return err
		}
		node.Stop()
		template = node
	}
	if err := g.Nodes[0].startWith(newCluster); err != nil {
		return err
	}
	for _, node := range g.Nodes[1:] {
		if err := node.start(); err != nil {
			return err
		}
	}
	return nil
}

const newCluster = "--wsrep-new-cluster"

func newGaleraNode(t testing.TB, template *Server, library string, addresses []string, number int) (*Server, error) {
	s, err := newServer(t, "mysql")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.prepare("cp", "-r", filepath.Join(template.dir, "data"), data); err != nil {
		return nil, err
	}
	port, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	transferPort, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("mysql://vedette:vedette@127.0.0.1:%d/vedette", port)
	s.program, s.quit = template.program, template.quit
	for _, arg := range template.args {
		switch {
		case strings.HasPrefix(arg, "--init-file="): // its statements are in the copied files
		case strings.HasPrefix(arg, "--port="):
			s.args = append(s.args, fmt.Sprintf("--port=%d", port))
		case strings.HasPrefix(arg, "--wsrep-"): // the template's own
		default:
			s.args = append(s.args, strings.ReplaceAll(arg, template.dir, s.dir))
		}
	}
	for _, setting := range GaleraSettings {
		s.args = append(s.args, "--"+setting)
	}
	s.args = append(s.args, "--wsrep-provider="+library, "--wsrep-cluster-name=vedette", "--wsrep-cluster-address=gcomm://"+strings.Join(addresses, ","),
		fmt.Sprintf("--wsrep-node-name=node%d", number), "--wsrep-node-address="+addresses[number],
		// Short timeouts, so that the test of a partition is short. gcache keeps what a node that was away needs.
		fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;gcache.size=64M;"+
			"evs.keepalive_period=PT0.2S;evs.suspect_timeout=PT1S;evs.inactive_check_period=PT0.2S;evs.inactive_timeout=PT3S;evs.install_timeout=PT3S;pc.recovery=false",
			addresses[number], transferPort))
	s.beforeStart = s.recoverPosition
	dsn, err := MySQLDSN(s.URL)
	if err != nil {
		return nil, err
	}
	s.ping = func(ctx context.Context) error { return pingGalera(ctx, dsn) }
	return s, nil
}

// pingGalera returns an error until a node belongs to the majority and has applied what the others have committed.
func pingGalera(ctx context.Context, dsn string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var name, state string
	if err := db.QueryRowContext(ctx, `SHOW STATUS LIKE 'wsrep_local_state_comment'`).Scan(&name, &state); err != nil {
		return err
	}
	if state != "Synced" {
		return errors.New("the node is " + state)
	}
	return nil
}

var recoveredPosition = regexp.MustCompile(`Recovered position: (\S+)`)

// recoverPosition returns the argument that tells a node that was killed which transactions it has, as the unit of systemd
// does. Without it, the node would copy all data from another one.
func (s *Server) recoverPosition() ([]string, error) {
	state, err := os.ReadFile(filepath.Join(s.dir, "data", "grastate.dat"))
	if err != nil || !strings.Contains(string(state), "seqno:   -1") {
		return nil, err
	}
	cmd := exec.Command(s.program, slices.Concat(s.args, []string{"--wsrep-recover"})...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = attributes(s.account)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("recover the position of a Galera node: %w\n%s", err, out)
	}
	found := recoveredPosition.FindSubmatch(out)
	if found == nil {
		return nil, fmt.Errorf("the Galera node does not tell which transactions it has:\n%s", out)
	}
	return []string{"--wsrep-start-position=" + string(found[1])}, nil
}

// Database creates an empty database, and returns its URL at a node. All nodes have it then.
func (g *Galera) Database(node int) string {
	g.t.Helper()
	name := fmt.Sprintf("vedette_test_%d", g.created.Add(1))
	if err := Exec(g.Nodes[node].URL, "CREATE DATABASE "+name); err != nil {
		g.t.Fatal(err)
	}
	for _, other := range g.Nodes {
		if err := awaitApplied(g.t.Context(), other.URL); err != nil {
			g.t.Fatal(err)
		}
	}
	return g.At(node, name)
}

// awaitApplied waits until a node has applied what the others have committed before.
func awaitApplied(ctx context.Context, serverURL string) error {
	dsn, err := MySQLDSN(serverURL)
	if err != nil {
		return err
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SET SESSION wsrep_sync_wait = 1`); err != nil {
		return err
	}
	var one int
	return conn.QueryRowContext(ctx, `SELECT 1`).Scan(&one)
}

// At returns the URL of a database at a node.
func (g *Galera) At(node int, database string) string {
	return strings.TrimSuffix(g.Nodes[node].URL, "/vedette") + "/" + database
}

// Isolate cuts a node off from the others, while clients still reach it: it refuses to work, because it does not belong to the
// majority.
func (g *Galera) Isolate(node int) { g.setIsolation(node, 1) }

// Rejoin ends Isolate.
func (g *Galera) Rejoin(node int) { g.setIsolation(node, 0) }

func (g *Galera) setIsolation(node, value int) {
	g.t.Helper()
	if err := Exec(strings.TrimSuffix(g.Nodes[node].URL, "vedette"), fmt.Sprintf("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=%d'", value)); err != nil {
		g.t.Fatal(err)
	}
}

// AwaitMember waits until a node belongs to the majority, and has applied what the others have committed.
func (g *Galera) AwaitMember(node int) {
	g.t.Helper()
	_, done := g.Nodes[node].running()
	if err := g.Nodes[node].await(done); err != nil {
		g.t.Fatal(err)
	}
}
