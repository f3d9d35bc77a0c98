package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Main(m, nil)) }

// pod returns a Pod that runs the program test/node/pod with arguments.
func pod(name string, labels map[string]any, args ...string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": labels},
		"spec": map[string]any{"terminationGracePeriodSeconds": 0, "containers": []any{
			map[string]any{"name": "pod", "image": PodImage, "args": args, "imagePullPolicy": "Never"}}}}
}

const pods = "/api/v1/namespaces/default/pods"

// TestNode checks what tests rely on: Pods run, reach each other, the API server and Services by their names, and what a
// NetworkPolicy does not allow is refused.
func TestNode(t *testing.T) {
	Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n, err := Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(n.Err(), n.Stop()); err != nil {
			t.Error(err)
		}
	}()
	create := func(path string, object any) {
		t.Helper()
		if err := n.Plane.Create(ctx, path, object); err != nil {
			t.Fatal(err)
		}
	}
	create("/api/v1/namespaces/default/services", map[string]any{"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": 80, "targetPort": 8080}}}})
	create(pods, pod("web", map[string]any{"app": "web"}, "serve", "8080", "hello"))
	create(pods, pod("friend", map[string]any{"app": "friend"}))
	create(pods, pod("stranger", map[string]any{"app": "stranger"}))
	for _, name := range []string{"web", "friend", "stranger"} {
		if err := n.Plane.Await(ctx, pods+"/"+name, running); err != nil {
			t.Fatal(err)
		}
	}
	get := func(from, url string) error {
		out, err := n.Plane.Kubectl(ctx, "exec", from, "--", "/pod", "get", url)
		if err == nil && !strings.HasPrefix(string(out), "200 ") {
			return fmt.Errorf("got %s", out)
		}
		return err
	}
	for _, from := range []string{"friend", "stranger"} {
		if err := n.Await(ctx, from+" reaches the Service", func(context.Context) error { return get(from, "http://web") }); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := n.Plane.Kubectl(ctx, "exec", "friend", "--", "/pod", "dial", "kubernetes.default.svc.cluster.local:443"); err != nil {
		t.Errorf("a Pod does not reach the API server: %v %s", err, out)
	}
	create("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", map[string]any{"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "policyTypes": []any{"Ingress"},
			"ingress": []any{map[string]any{"from": []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "friend"}}}}}}}})
	if err := n.Await(ctx, "the stranger is refused", func(context.Context) error {
		if get("stranger", "http://web") == nil {
			return errors.New("the stranger gets an answer")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := get("friend", "http://web"); err != nil {
		t.Errorf("the NetworkPolicy allows it: %v", err)
	}
}

func running(object map[string]any) bool {
	status, _ := object["status"].(map[string]any)
	return status["phase"] == "Running"
}

// TestNothingIsLeft kills a run of tests as kill -9 does while a Pod runs, and checks that no process, control group or directory is
// left of it, and that its interfaces were never visible.
func TestNothingIsLeft(t *testing.T) {
	if reason := Missing(); reason != "" {
		t.Skip("a node needs " + reason)
	}
	if os.Getenv(victimVariable) != "" {
		n, err := Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Plane.Create(t.Context(), pods, pod("web", nil)); err != nil {
			t.Fatal(err)
		}
		if err := n.Plane.Await(t.Context(), pods+"/web", running); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s\n", n.Dir)
		select {} // until it is killed
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	victim := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^TestNothingIsLeft$")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "VEDETTE_NODE_") {
			victim.Env = append(victim.Env, variable)
		}
	}
	victim.Env = append(victim.Env, victimVariable+"=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	before := interfaces()
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	if _, err := fmt.Fscanln(out, &dir); err != nil || !strings.Contains(dir, dirPrefix) {
		_ = victim.Wait()
		t.Fatalf("the run of tests did not start a node: got %q (%v)", dir, err)
	}
	if len(leftOf(dir)) < 2 {
		t.Fatalf("got %v, want processes and a control group of a node that runs", leftOf(dir))
	}
	if now := interfaces(); !slices.Equal(now, before) {
		t.Errorf("the machine has the interfaces %q, and had %q before the node started", now, before)
	}
	if err := victim.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // killed
	for left := leftOf(dir); len(left) > 0; left = leftOf(dir) {
		select {
		case <-ctx.Done():
			t.Fatalf("these are left: %q", left)
		case <-time.After(pollInterval):
		}
	}
}

const victimVariable = "VEDETTE_TEST_NODE_VICTIM"

func interfaces() []string {
	found, _ := filepath.Glob("/sys/class/net/*")
	return found
}

// leftOf returns what is there of the node with a directory.
func leftOf(dir string) (left []string) {
	for _, pattern := range []string{dir, filepath.Join(cgroupRoot, "*", filepath.Base(dir))} {
		found, _ := filepath.Glob(pattern)
		left = append(left, found...)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		command, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err == nil && strings.Contains(string(command), dir) {
			left = append(left, string(command))
		}
	}
	return left
}
