//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/test/controlplane"
)

// realClusters are a real control plane, and the server of a `vedette up` in which it has two names.
type realClusters struct {
	*testing.T
	plane  *controlplane.Plane
	server string
}

func startRealClusters(t *testing.T) realClusters {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Controllers: true, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, withTwoContexts(t, text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := startCommand(t, "up", "--kubeconfig", kubeconfig, "--all-contexts", "--data-dir", t.TempDir(), "--port", "0", "--grpc-port", "0")
	live := regexp.MustCompile(`2 clusters are live on (http://[0-9.:]+)\.`)
	for n := 1; ; n++ {
		if found := live.FindStringSubmatch(strings.Join(out.lines(t, n), " ")); found != nil {
			return realClusters{t, plane, found[1]}
		}
	}
}

// withTwoContexts returns a kubeconfig in which the cluster has the contexts eu and us.
func withTwoContexts(t *testing.T, kubeconfig []byte) []byte {
	t.Helper()
	var c map[string]any
	if err := yaml.Unmarshal(kubeconfig, &c); err != nil {
		t.Fatal(err)
	}
	cluster := c["contexts"].([]any)[0].(map[string]any)["context"]
	c["contexts"] = []any{map[string]any{"name": "eu", "context": cluster}, map[string]any{"name": "us", "context": cluster}}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c realClusters) kubectl(args ...string) string {
	c.Helper()
	out, err := c.plane.Kubectl(c.Context(), args...)
	if err != nil {
		c.Fatal(err)
	}
	return string(out)
}

// vedette runs a command, and returns its output.
func (c realClusters) vedette(args ...string) string {
	c.Helper()
	out, errOut, err := runCLI(c.Context(), append(args, "--server", c.server)...)
	if err != nil {
		c.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, errOut)
	}
	return out
}

// await runs a command until its output satisfies a condition.
func (c realClusters) await(what string, satisfied func(string) bool, args ...string) string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for {
		out, errOut, err := runCLI(ctx, append(args, "--server", c.server)...)
		if err == nil && satisfied(out) {
			return out
		}
		select {
		case <-ctx.Done():
			c.Fatalf("%s: not yet: %v\n%s%s", what, err, out, errOut)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

const realWorkload = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {note: "two\nlines", long: LONG}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: init, image: "busybox:1", command: [sh, -c, "true"]}]
      containers:
      - name: web
        image: nginx:1
        ports: [{containerPort: 80, name: http}, {containerPort: 443}]
        resources: {requests: {cpu: 10m}, limits: {cpu: 100m}}
        env: [{name: A, value: b}, {name: C, valueFrom: {configMapKeyRef: {name: conf, key: c}}}]
        livenessProbe: {httpGet: {path: /, port: 80}}
        volumeMounts: [{name: conf, mountPath: /conf, readOnly: true}]
      volumes: [{name: conf, configMap: {name: conf}}, {name: tmp, emptyDir: {}}]
      nodeSelector: {kubernetes.io/os: linux}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: shop}
data: {c: d}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const realWidget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w1, namespace: shop, labels: {tier: front}}
spec: {baseURL: "http://a", apiKey: k, HTTPPort: 80, list: [1, {a: b, cD: true}], empty: {}, "x.y/z": 1, big: 9007199254740993, float: 1.5}
`

// TestCommandsMatchKubectl compares commands with those of kubectl, in a real cluster.
func TestCommandsMatchKubectl(t *testing.T) {
	c := startRealClusters(t)
	apply := func(manifest string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(manifest, "LONG", strings.Repeat("x", 200))), 0o600); err != nil {
			t.Fatal(err)
		}
		c.kubectl("apply", "-f", file)
	}
	apply(realWorkload)
	c.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
	apply(realWidget)
	c.kubectl("wait", "--for=condition=Available", "-n", "shop", "deployment/web", "--timeout=60s")

	t.Run("describe", func(t *testing.T) { c.with(t).describe() })
	t.Run("get", func(t *testing.T) { c.with(t).get() })
	t.Run("events", func(t *testing.T) { c.with(t).events() })
}

func (c realClusters) with(t *testing.T) realClusters {
	c.T = t
	return c
}

// describe compares descriptions with those of kubectl, byte for byte.
func (c realClusters) describe() {
	pod := strings.Fields(c.kubectl("get", "pods", "-n", "shop", "-o", "name"))[0]
	for _, args := range [][]string{
		{pod, "-n", "shop", "--show-events=false"},
		{"deployment", "web", "-n", "shop", "--show-events=false"},
		{"widgets", "w1", "-n", "shop"},
		{"deploy", "we", "-n", "shop", "--show-events=false"}, // a prefix
	} {
		want := c.kubectl(append([]string{"describe"}, args...)...)
		got := c.vedette(append([]string{"describe", "--account", "eu"}, args...)...)
		if strings.TrimRight(got, "\n") != strings.TrimRight(want, "\n") {
			c.Errorf("describe %s: got\n%s\nwant\n%s", strings.Join(args, " "), got, want)
		}
	}
	both := c.vedette("describe", "deploy/web", "-n", "shop", "--account", "eu,us")
	if strings.Count(both, "Account:") != 2 || !strings.Contains(both, "ScalingReplicaSet") || !strings.Contains(both, "NewReplicaSet:") {
		c.Errorf("got %s, want two descriptions with their Events", both)
	}
	if all := c.vedette("describe", "pods", "-n", "shop", "--account", "eu"); strings.Count(all, "Name:  ") < 2 || strings.Contains(all, "Events:") {
		c.Errorf("got %s, want both pods without Events", all)
	}
	_, errOut, err := runCLI(c.Context(), "describe", "pod", "nonesuch", "--account", "*", "--server", c.server)
	if err == nil || !strings.Contains(err.Error(), `pod "nonesuch" not found`) {
		c.Errorf("got error %v, %s, want not found", err, errOut)
	}
}

// get compares formats, selection and order with those of kubectl.
func (c realClusters) get() {
	c.await("both pods are stored", func(out string) bool { return strings.Count(out, "Running") == 2 }, "get", "pods", "-n", "shop", "--account", "eu")
	for _, args := range [][]string{
		{"pods", "-n", "shop", "-o", "jsonpath={.items[*].metadata.name}"},
		{"pods", "-n", "shop", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}`},
		{"deploy", "web", "-n", "shop", "-o", "jsonpath={.spec.replicas}"},
		{"pods", "-n", "shop", "-o", "jsonpath-as-json={.items[*].spec.containers[*].image}"},
		{"pods", "-n", "shop", "-o", "go-template={{range .items}}{{.spec.nodeName}} {{end}}"},
		{"pods", "-n", "shop", "-o", "custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image,NONE:.metadata.nonesuch"},
		{"deploy", "-n", "shop", "-o", "custom-columns=R:.spec.replicas", "--no-headers"},
		{"nodes", "--sort-by", "{.metadata.name}", "-o", "custom-columns=NAME:.metadata.name"},
		{"pods", "-n", "shop", "--field-selector", "status.phase=Running,spec.restartPolicy!=Never", "-o", "jsonpath={.items[*].metadata.name}"},
		{"pods", "-n", "shop", "--field-selector", "status.phase=Failed", "-o", "jsonpath={.items}"},
		{"pods", "-n", "shop", "-l", "app in (web,db),!tier,app", "-o", "jsonpath={.items[*].metadata.name}"},
		{"pods", "-n", "shop", "-l", "app notin (web)", "-o", "jsonpath={.items[*].metadata.name}"},
	} {
		want, got := c.kubectl(append([]string{"get"}, args...)...), c.vedette(append([]string{"get", "--account", "eu"}, args...)...)
		if got != want {
			c.Errorf("get %s: got\n%s\nwant\n%s", strings.Join(args, " "), got, want)
		}
	}
	for _, args := range [][]string{
		{"get", "pods", "-o", "jsonpath={.items"}, {"get", "pods", "-o", "custom-columns=NAME"}, {"get", "pods", "-o", "custom-columns"},
		{"get", "pods", "-o", "go-template={{.a"}, {"get", "pods", "-o", "jsonpath"},
	} {
		_, wantErr := c.plane.Kubectl(c.Context(), args...)
		_, _, err := runCLI(c.Context(), append(args, "--server", c.server)...)
		if err == nil || wantErr == nil || !strings.Contains(wantErr.Error(), err.Error()) {
			c.Errorf("%s: got error %v, want kubectl's: %v", strings.Join(args, " "), err, wantErr)
		}
	}
	// A field that no API server knows: in the words of each.
	_, errOut, err := runCLI(c.Context(), "get", "pods", "-n", "shop", "--field-selector", "spec.nonesuch=a", "--server", c.server)
	if err == nil || strings.Count(errOut, `field label not supported: spec.nonesuch`) != 2 {
		c.Errorf("got %v, %q, want the words of both clusters", err, errOut)
	}
}

// events shows and watches the Events of both names.
func (c realClusters) events() {
	out := c.vedette("events", "-n", "shop", "--for", "deploy/web", "--account", "eu")
	if !strings.Contains(out, "ScalingReplicaSet") || !strings.Contains(out, "deployment/web") || strings.Contains(out, "pod/") {
		c.Errorf("got %s, want the Events about the Deployment", out)
	}
	if out := c.vedette("events", "-n", "shop", "--types", "warning", "--account", "eu", "--no-headers"); strings.Contains(out, "Normal") {
		c.Errorf("got %s, want Warnings only", out)
	}
	watched, _ := startCommand(c.T, "events", "-n", "shop", "--account", "*", "--watch", "--server", c.server)
	gotten, _ := startCommand(c.T, "get", "events", "-n", "shop", "--account", "*", "-w", "--server", c.server)
	before := len(watched.lines(c.T, 3))
	c.kubectl("scale", "-n", "shop", "deployment/web", "--replicas=3")
	for _, out := range []*outputBuffer{watched, gotten} {
		seen := map[string]bool{}
		for n := before + 1; len(seen) < 2; n++ {
			lines := out.lines(c.T, n)
			for _, line := range lines {
				if strings.Contains(line, "from 2 to 3") {
					seen[strings.Fields(line)[0]] = true
				}
			}
			if len(lines) > 1000 {
				c.Fatal("got a thousand Events, want that of the change")
			}
		}
		if !seen["eu"] || !seen["us"] {
			c.Errorf("got the Event of %v, want that of both accounts", seen)
		}
	}
}
