package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/ports"
)

// Patroni is three PostgreSQL servers of which one takes writes. Patroni chooses it, by means of etcd, and HAProxy leads to it.
type Patroni struct {
	Nodes []*PatroniNode
	Proxy *Server // HAProxy; its URL leads to the primary
	Etcd  *Server

	t testing.TB
}

// PatroniNode is one machine: PostgreSQL and the Patroni that controls it.
type PatroniNode struct {
	*Server // its URL leads to this node, whether it is the primary or not

	name string // for Patroni
	api  string // the URL of Patroni's REST API
	data string
}

// PatroniOptions configures a cluster.
type PatroniOptions struct {
	Options
	EtcdProgram string
	// Synchronous makes a commit wait until another node has it.
	Synchronous bool
}

const patroniNodes = 3

// StartPatroni starts a cluster, which is removed when the test ends. The test may kill its nodes. It must run as root, because each
// node has a namespace of its own, so that all its processes end with it.
func StartPatroni(t testing.TB, options PatroniOptions) *Patroni {
	t.Helper()
	p := &Patroni{t: t}
	if err := p.start(options); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Patroni) start(options PatroniOptions) error {
	if os.Geteuid() != 0 {
		return errors.New("tests with Patroni start each node in a namespace of its own, which only root may do: run them as root")
	}
	program, err := findForSeveralMachines("/usr/bin/patroni")
	if err != nil {
		return err
	}
	if _, err := findForSeveralMachines("/usr/lib/python3/dist-packages/etcd/client.py"); err != nil {
		return err
	}
	postgres, err := find(postgresVariable, "/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return err
	}
	if p.Etcd, err = startEtcd(p.t, options.EtcdProgram); err != nil {
		return err
	}
	p.removeLater(p.Etcd)
	for i := range patroniNodes {
		node, err := newPatroniNode(p.t, program, filepath.Dir(postgres), p.Etcd.URL, i, options)
		if err != nil {
			return err
		}
		p.removeLater(node.Server)
		p.Nodes = append(p.Nodes, node)
		if err := node.start(); err != nil { // the first one becomes the primary
			return err
		}
	}
	p.Proxy, err = startPatroniProxy(p.t, p.Nodes)
	if err != nil {
		return err
	}
	p.removeLater(p.Proxy)
	if err := Exec(p.Proxy.URL, `CREATE ROLE vedette SUPERUSER LOGIN`); err != nil {
		return err
	}
	p.Proxy.URL = strings.Replace(p.Proxy.URL, "postgres://postgres@", "postgres://vedette@", 1)
	return nil
}

func (p *Patroni) removeLater(s *Server) {
	p.t.Cleanup(func() {
		if err := s.remove(); err != nil {
			p.t.Error(err)
		}
	})
}

func startEtcd(t testing.TB, program string) (*Server, error) {
	s, err := newServer(t, "postgres")
	if err != nil {
		return nil, err
	}
	addresses, err := reserveAddresses(2)
	if err != nil {
		return nil, err
	}
	client, peer := "http://"+addresses[0], "http://"+addresses[1]
	// The cache of programs may be in root's home directory.
	s.program, s.quit = filepath.Join(s.dir, "etcd"), syscall.SIGTERM
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.program, text, 0o755); err != nil {
		return nil, err
	}
	s.URL = addresses[0]
	s.args = []string{"--name=one", "--data-dir=" + filepath.Join(s.dir, "data"), "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer, "--unsafe-no-fsync",
		"--heartbeat-interval=50", "--election-timeout=500", "--log-level=warn"}
	s.ping = func(ctx context.Context) error { return getOK(ctx, client+"/health") }
	return s, s.start()
}

func reserveAddresses(n int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		port, err := ports.Reserve()
		if err != nil {
			return nil, err
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	return addresses, nil
}

func getOK(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}

// patroniConfig is the file of a node. The times are short, so that tests are.
const patroniConfig = `scope: vedette
name: node%[1]d
restapi:
  listen: %[2]s
  connect_address: %[2]s
etcd3:
  host: %[3]s
bootstrap:
  dcs:
    ttl: 5
    loop_wait: 1
    retry_timeout: 2
    primary_start_timeout: 0
    synchronous_mode: %[4]t
    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        shared_buffers: 64MB
        wal_keep_size: 64MB
%[5]s
  initdb:
    - encoding: UTF8
    - locale: C
    - no-sync
postgresql:
  listen: %[6]s
  connect_address: %[6]s
  data_dir: %[7]s/data
  bin_dir: %[8]s
  pgpass: %[7]s/pgpass
  authentication:
    superuser: {username: postgres}
    replication: {username: replicator}
    rewind: {username: postgres}
  parameters:
    unix_socket_directories: %[7]s
  pg_hba:
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
`

func newPatroniNode(t testing.TB, program, postgres, etcd string, number int, options PatroniOptions) (*PatroniNode, error) {
	s, err := newServer(t, "postgres")
	if err != nil {
		return nil, err
	}
	addresses, err := reserveAddresses(2)
	if err != nil {
		return nil, err
	}
	var parameters strings.Builder
	settings := options.Settings
	if !options.Durable {
		settings = append([]string{"fsync=off"}, settings...) // pg_rewind needs full_page_writes
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		fmt.Fprintf(&parameters, "        %s: %q\n", name, value)
	}
	text := fmt.Sprintf(patroniConfig, number, addresses[0], etcd, options.Synchronous, parameters.String(), addresses[1], s.dir, postgres)
	if err := s.writeFile("patroni.yml", text); err != nil {
		return nil, err
	}
	n := &PatroniNode{Server: s, name: fmt.Sprint("node", number), api: "http://" + addresses[0], data: filepath.Join(s.dir, "data")}
	s.URL = fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", addresses[1])
	s.program, s.quit = "/usr/bin/unshare", syscall.SIGTERM
	s.args = []string{"--pid", "--fork", "--kill-child=KILL", "--mount-proc", "setpriv", "--reuid=" + strconv.Itoa(int(s.account.Uid)),
		"--regid=" + strconv.Itoa(int(s.account.Gid)), "--clear-groups", program, filepath.Join(s.dir, "patroni.yml")}
	s.account = nil // setpriv changes the user
	s.ping = func(ctx context.Context) error { return getOK(ctx, n.api+"/health") }
	return n, nil
}

// IsPrimary reports whether Patroni says that the node takes writes.
func (n *PatroniNode) IsPrimary(ctx context.Context) bool { return getOK(ctx, n.api+"/primary") == nil }

// StartAgain starts a node that was killed. Patroni ends if it cannot reach etcd at once, as on a busy machine, and is started
// again then, as the units of systemd do.
func (n *PatroniNode) StartAgain() (err error) {
	for range maxPatroniStarts {
		if err = n.start(); err == nil {
			return nil
		}
	}
	return err
}

const maxPatroniStarts = 5

// Primary returns the node that takes writes, for which it waits.
func (p *Patroni) Primary() *PatroniNode {
	p.t.Helper()
	node, err := p.FindPrimary(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return node
}

// FindPrimary is Primary for other goroutines than the test's.
func (p *Patroni) FindPrimary(ctx context.Context) (*PatroniNode, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, node := range p.Nodes {
			if node.IsPrimary(ctx) {
				return node, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no node of Patroni is the primary%s", p.logs())
		case <-tick.C:
		}
	}
}

// AwaitReplicas waits until a number of nodes stream from the primary, and are synchronous as configured.
func (p *Patroni) AwaitReplicas(count int, synchronous bool) {
	p.t.Helper()
	if err := p.FindReplicas(p.t.Context(), count, synchronous); err != nil {
		p.t.Fatal(err)
	}
}

// FindReplicas is AwaitReplicas for other goroutines than the test's.
func (p *Patroni) FindReplicas(ctx context.Context, count int, synchronous bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	db, err := sql.Open("pgx", p.Proxy.URL)
	if err != nil {
		return err
	}
	defer db.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var streaming int
	var lastErr error
	for {
		err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming'`).Scan(&streaming)
		if err == nil && streaming >= count && p.hasSynchronous(ctx) == synchronous {
			return nil
		}
		if ctx.Err() == nil {
			lastErr = err
		}
		select {
		case <-ctx.Done():
			err = fmt.Errorf("%d nodes stream from the primary, want %d nodes, synchronously: %v", streaming, count, synchronous)
			return fmt.Errorf("%w%s", errors.Join(err, lastErr), p.logs())
		case <-tick.C:
		}
	}
}

// hasSynchronous reports whether Patroni knows a node that has all commits. Only such a node becomes the primary, and Patroni knows it
// a moment later than PostgreSQL.
func (p *Patroni) hasSynchronous(ctx context.Context) bool {
	return slices.ContainsFunc(p.Nodes, func(n *PatroniNode) bool { return getOK(ctx, n.api+"/synchronous") == nil })
}

// Synchronous returns a node that has all commits of the primary.
func (p *Patroni) Synchronous(ctx context.Context) (*PatroniNode, error) {
	for _, node := range p.Nodes {
		if getOK(ctx, node.api+"/synchronous") == nil {
			return node, nil
		}
	}
	return nil, errors.New("no node of Patroni has all commits of the primary")
}

// HandOver asks Patroni to make another node the primary, as an administrator does for maintenance.
func (p *Patroni) HandOver(ctx context.Context) error {
	primary, err := p.FindPrimary(ctx)
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"leader": %q}`, primary.name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, primary.api+"/switchover", strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body) // the status says enough
		return fmt.Errorf("POST %s/switchover: %s: %s", primary.api, response.Status, text)
	}
	return nil
}

func (p *Patroni) logs() (text string) {
	for i, node := range p.Nodes {
		text += fmt.Sprintf("\nnode%d:\n%s", i, node.log())
	}
	return text
}

// StopReplication keeps all others from receiving what this node, which is the primary, commits from now on.
func (n *PatroniNode) StopReplication(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.data, "pg_hba.conf"), []byte("host all all 127.0.0.1/32 trust\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`SELECT pg_reload_conf()`, `SELECT pg_terminate_backend(pid) FROM pg_stat_replication`} {
		if err := Exec(n.URL, statement); err != nil {
			t.Fatal(err)
		}
	}
}
