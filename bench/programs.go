package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/ports"
)

// build builds the programs with the flags of a release.
func (b *bench) build(ctx context.Context) error {
	for _, p := range []struct{ in, pkg string }{{".", "./cmd/vedette-agent"}, {".", "./cmd/vedette-server"}, {"bench/informers", "."},
		{"bench/informers", "./calls"}} {
		out := filepath.Join(b.dir, filepath.Base(p.pkg))
		if p.pkg == "." {
			out = b.program("informers")
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "grpcnotrace,disable_grpc_modules", "-ldflags", "-s -w", "-o", out,
			p.pkg)
		cmd.Dir = p.in
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", p.pkg, err, text)
		}
	}
	return nil
}

func (b *bench) program(name string) string { return filepath.Join(b.dir, name) }

// server is a running vedette-server.
type server struct {
	*program
	rest, grpc string // host:port
	dir        string // of its SQLite database
	config     string
}

// startServer starts a server and waits until it is healthy. It uses SQLite if the database URL
// is empty.
func (b *bench) startServer(ctx context.Context, database string) (*server, error) {
	dir, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, config: filepath.Join(dir, "vedette-server.yml")}
	restPort, grpcPort := freePort(), freePort()
	s.rest, s.grpc = fmt.Sprintf("127.0.0.1:%d", restPort), fmt.Sprintf("127.0.0.1:%d", grpcPort)
	config := fmt.Sprintf("server:\n  port: %d\ngrpc:\n  server:\n    port: %d\nlogging:\n  level: warn\n", restPort, grpcPort)
	if database != "" {
		config += fmt.Sprintf("sql:\n  url: %q\n", database)
	}
	if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return s, b.runServer(ctx, s)
}

func (b *bench) runServer(ctx context.Context, s *server) (err error) {
	s.program, err = b.start("server", nil, b.program("vedette-server"), "--config", s.config, "--data-dir", s.dir)
	if err != nil {
		return err
	}
	return await(ctx, "the server's health", 10*time.Millisecond, func() (bool, error) {
		var health struct{ Status string }
		err := s.get(ctx, "/health", nil, &health)
		return health.Status == "UP", err
	}, s.program)
}

// get decodes the response of the server.
func (s *server) get(ctx context.Context, path string, query url.Values, into any) error {
	u := url.URL{Scheme: "http", Host: s.rest, Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %.300s", path, resp.Status, body)
	}
	return json.Unmarshal(body, into)
}

// count returns how many objects of the accounts the server returns.
func (s *server) count(ctx context.Context, accounts string) (int, error) {
	var page struct{ Total int }
	query := url.Values{"limit": {"1"}}
	if accounts != "" {
		query.Set("account", accounts)
	}
	err := s.get(ctx, "/vedette/v1/objects", query, &page)
	return page.Total, err
}

// awaitCount waits until the server returns the given number of objects, and returns the time.
func (s *server) awaitCount(ctx context.Context, accounts string, n int, every time.Duration, programs ...*program) (time.Time, error) {
	last := 0
	err := await(ctx, fmt.Sprintf("%d objects of %q", n, accounts), every, func() (bool, error) {
		var err error
		last, err = s.count(ctx, accounts)
		return err == nil && last == n, err
	}, append(programs, s.program)...)
	if err != nil {
		err = fmt.Errorf("%w; got %d", err, last)
	}
	return time.Now(), err
}

// awaitLive waits until all feeds are live.
func (s *server) awaitLive(ctx context.Context, programs ...*program) error {
	return await(ctx, "all feeds to be live", 200*time.Millisecond, func() (bool, error) {
		states, err := s.feedStates(ctx)
		return len(states) == 1 && states["live"] > 0, err
	}, append(programs, s.program)...)
}

// feedStates returns the number of feeds in each state.
func (s *server) feedStates(ctx context.Context) (map[string]int, error) {
	states, cursor := map[string]int{}, ""
	for {
		var page struct {
			Items  []struct{ State string }
			Cursor string
		}
		if err := s.get(ctx, "/vedette/v1/feeds", url.Values{"limit": {"5000"}, "cursor": {cursor}}, &page); err != nil {
			return nil, err
		}
		for _, f := range page.Items {
			states[f.State]++
		}
		cursor = page.Cursor
		if cursor == "" {
			return states, nil
		}
	}
}

// account is an account of an agent's configuration.
type account struct {
	name       string
	kubeconfig string // file
	kinds      []string
}

// startAgent runs an agent that reports to an address.
func (b *bench) startAgent(serverAddress string, accounts ...account) (*program, error) {
	return b.startVerifyingAgent(3600, serverAddress, accounts...)
}

// startVerifyingAgent starts an agent that verifies each feed at an interval in seconds.
func (b *bench) startVerifyingAgent(interval int, serverAddress string, accounts ...account) (*program, error) {
	var config strings.Builder
	fmt.Fprintf(&config, "agentId: bench-%d\nclouddriver:\n  grpc: %s\n  insecure: true\nserver:\n  host: 127.0.0.1\n  port: %d\nlogging:\n  level: warn\nkubernetes:\n  verifyIntervalSeconds: %d\n  accounts:\n",
		freePort(), serverAddress, freePort(), interval)
	for _, a := range accounts {
		fmt.Fprintf(&config, "    - name: %s\n      kubeconfigFile: %s\n", a.name, a.kubeconfig)
		if len(a.kinds) > 0 {
			fmt.Fprintf(&config, "      kinds: [%s]\n", strings.Join(a.kinds, ", "))
		}
	}
	pprofPort := freePort()
	if b.profiles != "" {
		fmt.Fprintf(&config, "pprof:\n  enabled: true\n  port: %d\n", pprofPort)
	}
	file, err := os.CreateTemp(b.dir, "agent-*.yml")
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(file, config.String()); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	agent, err := b.start("agent", nil, b.program("vedette-agent"), "--config", file.Name())
	if err != nil {
		return nil, err
	}
	agent.pprof = fmt.Sprintf("127.0.0.1:%d", pprofPort)
	return agent, nil
}

func freePort() int {
	port, err := ports.Reserve()
	if err != nil {
		panic(err) // no port is free
	}
	return port
}

// equals reports whether the server returns exactly these objects, by uid and
// resourceVersion.
func (s *server) equals(ctx context.Context, want map[string]string) (bool, error) {
	cursor, seen := "", 0
	for {
		var page struct {
			Items  []struct{ UID, ResourceVersion string }
			Cursor string
		}
		if err := s.get(ctx, "/vedette/v1/objects", url.Values{"limit": {"5000"}, "cursor": {cursor}}, &page); err != nil {
			return false, err
		}
		for _, o := range page.Items {
			if want[o.UID] != o.ResourceVersion {
				return false, nil
			}
		}
		seen += len(page.Items)
		cursor = page.Cursor
		if cursor == "" {
			return seen == len(want), nil
		}
	}
}
