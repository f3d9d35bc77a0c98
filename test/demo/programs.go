package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/ports"
)

// demo has the programs and clusters of the demo.
type demo struct {
	dir      string
	clusters []*cluster
	port     int // for REST
	children []*child
}

type child struct {
	name string
	cmd  *exec.Cmd
	done chan error
}

func (d *demo) rest() string { return fmt.Sprintf("http://127.0.0.1:%d", d.port) }

// start runs the server and one agent per cluster from bin/.
func (d *demo) start(ctx context.Context) error {
	var grpcPort int
	d.port, grpcPort = freePort(7002), freePort(9091)
	config := fmt.Sprintf("server:\n  port: %d\ngrpc:\n  server:\n    port: %d\n", d.port, grpcPort)
	if err := d.run("vedette-server", "server", config, nil, "--data-dir", filepath.Join(d.dir, "data")); err != nil {
		return err
	}
	if err := d.awaitHealth(ctx); err != nil {
		return err
	}
	logf("server is up: REST on %s, agents on 127.0.0.1:%d, data in SQLite", d.rest(), grpcPort)
	if err := d.startPodAgent(ctx, d.clusters[0], grpcPort); err != nil {
		return err
	}
	west := d.clusters[1]
	return d.run("vedette-agent", "agent-west", agentConfig(grpcPort, west.name, "kubeconfigFile: "+west.plane.Kubeconfig()), nil)
}

// startPodAgent runs an agent with the environment and the files that Kubernetes provides in a
// pod.
func (d *demo) startPodAgent(ctx context.Context, c *cluster, grpcPort int) error {
	account := filepath.Join(d.dir, "serviceaccount")
	if err := mountServiceAccount(ctx, c.plane, account); err != nil {
		return err
	}
	u, err := url.Parse(c.plane.URL)
	if err != nil {
		return err
	}
	env := []string{"KUBERNETES_SERVICE_HOST=" + u.Hostname(), "KUBERNETES_SERVICE_PORT=" + u.Port(), "VEDETTE_SERVICE_ACCOUNT_DIR=" + account}
	return d.run("vedette-agent", "agent-east", agentConfig(grpcPort, c.name, "serviceAccount: true"), env)
}

func mountServiceAccount(ctx context.Context, plane *controlplane.Plane, dir string) error {
	objects := []struct {
		path string
		body any
	}{
		{"/api/v1/namespaces/vedette", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "vedette"}}},
		{"/api/v1/namespaces/vedette/serviceaccounts/vedette-agent", map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "vedette-agent", "namespace": "vedette"}}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles/vedette-agent", map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "vedette-agent"},
			"rules": []any{map[string]any{"apiGroups": []string{"*"}, "resources": []string{"*"}, "verbs": []string{"*"}}}}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/vedette-agent", map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "vedette-agent"},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vedette-agent"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "vedette-agent", "namespace": "vedette"}}}},
	}
	for _, o := range objects {
		if err := plane.Apply(ctx, o.path, o.body); err != nil {
			return fmt.Errorf("create the service account of the agent: %w", err)
		}
	}
	token, err := plane.ServiceAccountToken(ctx, "vedette", "vedette-agent")
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(plane.CA())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600)
}

func agentConfig(grpcPort int, account, access string) string {
	return fmt.Sprintf("agentId: agent-%s\nclouddriver:\n  grpc: 127.0.0.1:%d\n  insecure: true\nserver:\n  host: 127.0.0.1\n  port: %d\nkubernetes:\n  accounts:\n    - name: %s\n      %s\n",
		account, grpcPort, freePort(0), account, access)
}

// run starts a program from bin/ with a configuration file. Its log goes to a file.
func (d *demo) run(program, name, config string, env []string, args ...string) error {
	file := filepath.Join(d.dir, name+".yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join("bin", program), append([]string{"--config", file}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	c := &child{name: name, cmd: cmd, done: make(chan error, 1)}
	if err := c.start(); err != nil {
		return fmt.Errorf("start %s: %w: run `make build`", program, err)
	}
	d.children = append(d.children, c)
	return nil
}

// start starts the program, and waits for its exit on a thread that does nothing else: the kernel
// sends the death signal when the thread that started the program ends.
func (c *child) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.done <- c.cmd.Wait()
		}
	}()
	return <-started
}

// stop stops the programs in reverse order, and kills those that do not exit within ten
// seconds.
func (d *demo) stop() {
	for i := len(d.children) - 1; i >= 0; i-- {
		c := d.children[i]
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(10 * time.Second):
			_ = c.cmd.Process.Kill()
		}
	}
}

// watchChildren returns when ctx ends, or an error when a program exits.
func (d *demo) watchChildren(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := d.checkChildren(); err != nil {
				return err
			}
		}
	}
}

func (d *demo) checkChildren() error {
	for _, c := range d.children {
		select {
		case err := <-c.done:
			c.done <- err
			return fmt.Errorf("%s exited (%w), the end of its log:\n%s", c.name, err, tail(filepath.Join(d.dir, c.name+".log")))
		default:
		}
	}
	return nil
}

func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-10):], "\n")
}

// freePort returns the wanted port if it is free, or another free one. 0 means any port.
func freePort(want int) int {
	if want != 0 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", want)); err == nil {
			defer l.Close()
			return want
		}
	}
	port, err := ports.Reserve()
	if err != nil {
		return want
	}
	return port
}

// get decodes the response of the server.
func (d *demo) get(ctx context.Context, path string, into any) error {
	return d.request(ctx, http.MethodGet, path, nil, into)
}

func (d *demo) post(ctx context.Context, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return d.request(ctx, http.MethodPost, path, encoded, into)
}

func (d *demo) request(ctx context.Context, method, path string, sent []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, d.rest()+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
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
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, body)
	}
	return json.Unmarshal(body, into)
}
