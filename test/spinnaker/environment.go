package main

import (
	"bytes"
	"context"
	_ "embed" // for orca.yml
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	"github.com/vedette-io/vedette/test/compatibility"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/ports"
)

//go:embed orca.yml
var orcaConfig string

// startTimeout is how long Orca may take until it is healthy. On two busy cores it takes 20 seconds.
const startTimeout = 3 * time.Minute

// environment is everything that Orca needs: a cluster, Vedette, Redis and a Front50.
type environment struct {
	dir     string
	plane   *controlplane.Plane
	vedette *compatibility.Installation
	front50 *httptest.Server // also Vedette's
	ports   struct{ redis, orca int }
	running []*exec.Cmd
}

// startEnvironment starts everything but Orca in a directory.
func startEnvironment(ctx context.Context, dir string) (env *environment, err error) {
	env = &environment{dir: dir}
	defer func() {
		if err != nil {
			env.stop()
		}
	}()
	for _, port := range []*int{&env.ports.redis, &env.ports.orca} {
		if *port, err = ports.Reserve(); err != nil {
			return env, err
		}
	}
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
	arguments, err := filepath.Abs(arguments)
	if err != nil {
		return "", err
	}
	if err := env.start("redis-server", "--port", strconv.Itoa(env.ports.redis), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"); err != nil {
		return "", err
	}
	var config bytes.Buffer
	values := map[string]any{"Port": env.ports.orca, "Redis": env.ports.redis, "Clouddriver": env.vedette.URL(), "Front50": env.front50.URL}
	if err := template.Must(template.New("orca.yml").Parse(orcaConfig)).Execute(&config, values); err != nil {
		return "", err
	}
	file := filepath.Join(env.dir, "orca.yml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		return "", err
	}
	if err := env.start("java", "-Xmx1g", "--add-opens=java.base/java.util=ALL-UNNAMED", "-Dspring.config.location=file:"+file, "@"+arguments); err != nil {
		return "", err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", env.ports.orca)
	return url, env.awaitHealth(ctx, url)
}

// start starts a program, whose output goes to a file.
func (env *environment) start(program string, args ...string) error {
	log, err := os.Create(filepath.Join(env.dir, program+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = env.dir, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	env.running = append(env.running, cmd)
	return nil
}

func (env *environment) awaitHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !isHealthy(ctx, url) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for Orca at %s: %w: see %s", url, ctx.Err(), filepath.Join(env.dir, "java.log"))
		case <-tick.C:
		}
	}
	return nil
}

func isHealthy(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// stop stops everything.
func (env *environment) stop() {
	for _, cmd := range env.running {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
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
