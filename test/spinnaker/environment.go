package main

import (
	"context"
	"net/http/httptest"
	"os"
	"slices"

	"github.com/vedette-io/vedette/test/compatibility"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/spinnaker/service"
)

// environment is everything that Orca needs: a cluster, Vedette, Redis and a Front50.
type environment struct {
	dir     string
	plane   *controlplane.Plane
	vedette *compatibility.Installation
	front50 *httptest.Server // also Vedette's
	running []*process.Process
}

// startEnvironment starts everything but Orca in a directory.
func startEnvironment(ctx context.Context, dir string) (env *environment, err error) {
	env = &environment{dir: dir}
	defer func() {
		if err != nil {
			env.stop()
		}
	}()
	env.plane, err = controlplane.Start(ctx, controlplane.Options{Controllers: true, Nodes: 3, Log: os.Stderr})
	if err != nil {
		return env, err
	}
	err = env.plane.Apply(ctx, "/api/v1/namespaces/dev-a", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "dev-a"}})
	if err != nil {
		return env, err
	}
	if err := env.plane.AppendLog("done"); err != nil {
		return env, err
	}
	kubeconfig, err := os.ReadFile(env.plane.Kubeconfig())
	if err != nil {
		return env, err
	}
	env.front50 = httptest.NewServer(compatibility.Front50Handler())
	env.vedette, err = compatibility.Start(ctx, compatibility.Config{Dir: dir, Kubeconfig: kubeconfig, Accounts: compatibility.DefaultAccounts(),
		Front50: env.front50.URL})
	return env, err
}

// startOrca starts Redis and Orca, whose class path and main class are in a Java argument file, and
// returns the URL.
func (env *environment) startOrca(ctx context.Context, arguments string) (string, error) {
	redis, port, err := service.StartRedis(env.dir)
	if err != nil {
		return "", err
	}
	env.running = append(env.running, redis)
	orca, err := service.Start(service.Config{Name: "orca", Arguments: arguments, Dir: env.dir, Redis: port, Front50: env.front50.URL,
		Clouddriver: env.vedette.URL()})
	if err != nil {
		return "", err
	}
	env.running = append(env.running, orca.Process)
	return orca.URL(), orca.AwaitHealth(ctx)
}

// stop stops everything.
func (env *environment) stop() {
	for _, p := range slices.Backward(env.running) {
		p.Stop()
	}
	if env.vedette != nil {
		env.vedette.Stop()
	}
	if env.front50 != nil {
		env.front50.Close()
	}
	if env.plane != nil {
		_ = env.plane.Stop() // what it reports does not change the result
	}
}
