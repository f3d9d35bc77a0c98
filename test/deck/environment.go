package main

import (
	"context"
	_ "embed" // for objects and settings
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/programs"
	"github.com/vedette-io/vedette/test/proxy"
	"github.com/vedette-io/vedette/test/spinnaker/service"
)

var (
	//go:embed definition.yaml
	definition string
	//go:embed objects.yaml
	objects string
	//go:embed settings.js
	settings []byte
)

// account is the account that moves.
const account = "prod"

// environment is everything below Deck.
type environment struct {
	dir       string // for programs, data and logs
	plane     *controlplane.Plane
	link      *proxy.Proxy // between agent and server
	vedette   *client.Client
	gate      *service.Service
	deck      *httptest.Server
	stopped   []func() // in the order of starts
	agentPort int
}

// startEnvironment starts everything but the agent. The account is that of Clouddriver.
func startEnvironment(ctx context.Context, o options, dir string, applications []string) (env *environment, err error) {
	env = &environment{dir: dir}
	defer func() {
		if err != nil {
			env.stop()
		}
	}()
	if err := programs.Build(ctx, dir, "vedette-agent", "vedette-server"); err != nil {
		return env, err
	}
	env.plane, err = controlplane.Start(ctx, controlplane.Options{Controllers: true, Nodes: 3, Log: os.Stderr})
	if err != nil {
		return env, err
	}
	env.onStop(func() { _ = env.plane.Stop() }) // what it reports does not change the result
	if err := env.plane.AppendLog("a line of the container"); err != nil {
		return env, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return env.createObjects(groupCtx, applications) })
	group.Go(func() error { return env.startServices(groupCtx, o, applications) })
	if err := group.Wait(); err != nil {
		return env, err
	}
	env.deck = httptest.NewServer(deckHandler(o.deck, env.gate.URL()))
	env.onStop(env.deck.Close)
	return env, nil
}

func (env *environment) onStop(f func()) { env.stopped = append(env.stopped, f) }

func (env *environment) stop() {
	for _, f := range slices.Backward(env.stopped) {
		f()
	}
}

// startServices starts Clouddriver, the server in front of it, Orca and Gate.
func (env *environment) startServices(ctx context.Context, o options, applications []string) error {
	redis, redisPort, err := service.StartRedis(env.dir)
	if err != nil {
		return err
	}
	env.onStop(redis.Stop)
	var orca *service.Service
	stand := &front50{applications: applications, start: func(p map[string]any) error { return startPipeline(orca.URL(), p) }}
	front50 := httptest.NewServer(stand.handler())
	env.onStop(front50.Close)
	binaries, err := controlplane.Build(ctx, io.Discard)
	if err != nil {
		return err
	}
	start := func(cfg service.Config) (*service.Service, error) {
		cfg.Dir = env.dir
		cfg.Redis = redisPort
		cfg.Front50 = front50.URL
		cfg.Arguments = filepath.Join(o.spinnaker, cfg.Name+".args")
		s, err := service.Start(cfg)
		if err == nil {
			env.onStop(s.Stop)
		}
		return s, err
	}
	clouddriver, err := start(service.Config{Name: "clouddriver", Kubectl: binaries["kubectl"],
		Accounts: []service.Account{{Name: account, Kubeconfig: env.plane.Kubeconfig(), Interval: 5}}})
	if err != nil {
		return err
	}
	if err := clouddriver.AwaitHealth(ctx); err != nil {
		return err
	}
	server, err := env.startServer(clouddriver.URL(), front50.URL)
	if err != nil {
		return err
	}
	if env.vedette, err = client.New(server); err != nil {
		return err
	}
	if orca, err = start(service.Config{Name: "orca", Clouddriver: server}); err != nil {
		return err
	}
	if env.gate, err = start(service.Config{Name: "gate", Clouddriver: server, Orca: orca.URL()}); err != nil {
		return err
	}
	if err := orca.AwaitHealth(ctx); err != nil {
		return err
	}
	return env.gate.AwaitHealth(ctx)
}

const serverConfig = `server:
  port: %d
grpc:
  server:
    port: %d
services:
  front50:
    baseUrl: %q
upstream:
  baseUrl: %q
  refreshInterval: 5s
kubesvc:
  cache:
    cacheDefaults: [Ballast.deck.example.com]
`

// startServer starts our server, and the link to it, and returns the URL of the server.
func (env *environment) startServer(clouddriver, front50 string) (string, error) {
	var rest, grpc int
	for _, port := range []*int{&rest, &grpc, &env.agentPort} {
		var err error
		if *port, err = ports.Reserve(); err != nil {
			return "", err
		}
	}
	if err := env.run("vedette-server", fmt.Sprintf(serverConfig, rest, grpc, front50, clouddriver), "--data-dir", "data"); err != nil {
		return "", err
	}
	var err error
	if env.link, err = proxy.Start(fmt.Sprintf("127.0.0.1:%d", grpc)); err != nil {
		return "", err
	}
	env.onStop(env.link.Close)
	return fmt.Sprintf("http://127.0.0.1:%d", rest), nil
}

const agentConfig = `agentId: agent-prod
clouddriver:
  grpc: %s
  insecure: true
server:
  host: 127.0.0.1
  port: %d
kubernetes:
  accounts:
  - name: %s
    kubeconfigFile: %s
`

// startAgent starts the agent over a slow link, so that the account begins to move.
func (env *environment) startAgent() error {
	env.link.Limit(slowLink)
	return env.run("vedette-agent", fmt.Sprintf(agentConfig, env.link.Address(), env.agentPort, account, env.plane.Kubeconfig()))
}

func (env *environment) run(name, config string, args ...string) error {
	if err := os.WriteFile(filepath.Join(env.dir, name+".yml"), []byte(config), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(env.dir, name), append([]string{"--config", name + ".yml"}, args...)...)
	cmd.Dir = env.dir
	p, err := process.Start(name, cmd)
	if err != nil {
		return err
	}
	env.onStop(p.Stop)
	return nil
}

// hasMoved reports whether the server has all objects of the account.
func (env *environment) hasMoved(ctx context.Context) (bool, error) {
	list, err := env.vedette.Accounts(ctx, "")
	if err != nil || len(list) != 1 {
		return false, err
	}
	feeds := list[0].Feeds
	return feeds[string(vedette.FeedLive)] > 0 && feeds[string(vedette.FeedPending)] == 0 && feeds[string(vedette.FeedSyncing)] == 0, nil
}

// createObjects creates the objects of all applications, and waits until nothing changes by itself any more.
func (env *environment) createObjects(ctx context.Context, applications []string) error {
	if err := env.apply(ctx, definition); err != nil {
		return err
	}
	if _, err := env.plane.Kubectl(ctx, "wait", "--for=condition=Established", "crd/caches.deck.example.com", "crd/ballasts.deck.example.com"); err != nil {
		return err
	}
	for _, name := range applications {
		if err := env.apply(ctx, strings.ReplaceAll(objects, "APP", name)); err != nil {
			return err
		}
	}
	for _, image := range []string{"1.0", "1.1", "1.2"} {
		for _, name := range applications {
			if _, err := env.plane.Kubectl(ctx, "set", "image", "-n", name, "deployment/web", "main=registry.example.com/"+name+"/web:"+image); err != nil {
				return err
			}
			if _, err := env.plane.Kubectl(ctx, "rollout", "status", "-n", name, "deployment/web", "--timeout=120s"); err != nil {
				return err
			}
		}
	}
	return env.createBallast(ctx)
}

// apply applies manifests with kubectl.
func (env *environment) apply(ctx context.Context, manifests string) error {
	file := filepath.Join(env.dir, "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		return err
	}
	_, err := env.plane.Kubectl(ctx, "apply", "-f", file)
	return err
}

// deckHandler serves Deck's files, our settings, and Gate on the same origin.
func deckHandler(dir, gate string) http.Handler {
	target, err := url.Parse(gate)
	if err != nil {
		panic(err) // we have made it ourselves
	}
	mux := http.NewServeMux()
	mux.Handle(gatePath+"/", http.StripPrefix(gatePath, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Origin") // it is the same origin for the browser
	}}))
	mux.HandleFunc("GET /settings.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		http.ServeContent(w, r, "settings.js", time.Time{}, strings.NewReader(string(settings)))
	})
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	return mux
}
