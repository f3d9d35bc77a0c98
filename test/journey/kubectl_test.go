package journey

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/test/controlplane"
)

// fullWorkload returns a Deployment or another workload whose pod template uses most of the fields.
func fullWorkload(kind, image string) string {
	return strings.NewReplacer("KIND", kind, "IMAGE", image).Replace(`apiVersion: apps/v1
kind: KIND
metadata:
  name: rich
  namespace: flags
  labels: {part: rich}
  annotations:
    kubernetes.io/change-cause: now with IMAGE
spec:
  selector:
    matchLabels: {app: rich}
  template:
    metadata:
      labels: {app: rich, tier: front}
      annotations:
        short: words
        long: "` + strings.Repeat("many words ", 20) + `"
        lines: "one\ntwo"
    spec:
      serviceAccountName: default
      priorityClassName: system-node-critical
      nodeSelector: {disk: fast, arch: any}
      tolerations:
      - {key: b, operator: Equal, value: c, effect: NoSchedule}
      - {key: a, operator: Exists}
      - {key: d, operator: Exists, effect: NoExecute, tolerationSeconds: 7}
      - {operator: Exists}
      topologySpreadConstraints:
      - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: rich}}}
      initContainers:
      - name: first
        image: example.com/first:1
        command: [sh, -c, "echo one\necho two"]
      containers:
      - name: main
        image: IMAGE
        args: [--quick, --port=80]
        ports:
        - {containerPort: 80, name: http}
        - {containerPort: 9091}
        resources:
          limits: {cpu: 1500m, memory: 1Gi}
          requests: {cpu: 100m, memory: 64Mi, ephemeral-storage: 1G}
        securityContext: {seccompProfile: {type: RuntimeDefault}}
        livenessProbe: {httpGet: {path: /health, port: http, scheme: HTTPS}, initialDelaySeconds: 3}
        readinessProbe: {tcpSocket: {port: 80}}
        startupProbe: {exec: {command: [cat, /tmp/up]}, failureThreshold: 30}
        envFrom:
        - configMapRef: {name: colours}
        - {prefix: S_, secretRef: {name: keys, optional: true}}
        env:
        - {name: PLAIN, value: words}
        - {name: LINES, value: "one\ntwo"}
        - {name: EMPTY}
        - name: POD
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: CPUS
          valueFrom: {resourceFieldRef: {resource: limits.cpu}}
        - name: MEMORY
          valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Mi}}
        - name: KEY
          valueFrom: {secretKeyRef: {name: keys, key: one}}
        - name: SKY
          valueFrom: {configMapKeyRef: {name: colours, key: sky, optional: true}}
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: colours, mountPath: /colours, readOnly: true, subPath: sky}
      - name: side
        image: example.com/side:1
        ports:
        - {containerPort: 81, hostPort: 8081}
        livenessProbe: {grpc: {port: 81, service: live}}
        env:
        - name: CPUS
          valueFrom: {resourceFieldRef: {resource: limits.cpu}}
      volumes:
      - {name: data, emptyDir: {sizeLimit: 1Gi}}
      - {name: memory, emptyDir: {medium: Memory}}
      - {name: colours, configMap: {name: colours}}
      - {name: keys, secret: {secretName: keys, optional: true}}
      - {name: claim, persistentVolumeClaim: {claimName: mine}}
      - {name: host, hostPath: {path: /var, type: Directory}}
      - {name: bare, hostPath: {path: /tmp}}
      - {name: net, nfs: {server: nfs.example.com, path: /x}}
      - {name: driver, csi: {driver: csi.example.com, volumeAttributes: {a: b, c: d}}}
      - name: all
        projected:
          sources:
          - serviceAccountToken: {path: token, expirationSeconds: 600}
          - configMap: {name: colours}
          - secret: {name: keys}
          - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
      - name: down
        downwardAPI:
          items:
          - {path: labels, fieldRef: {fieldPath: metadata.labels}}
          - {path: cpus, resourceFieldRef: {containerName: main, resource: limits.cpu}}
`)
}

// oracle runs kubectl against the same cluster. vedette's output must equal kubectl's.
type oracle struct {
	*cli
	file string // for kubectl's manifests
}

// kubectlOnlyLines matches lines that only kubectl prints, because they concern itself.
var kubectlOnlyLines = regexp.MustCompile(`(?m)^(W\d{4} .*|Warning: Immediate deletion does not wait .*)\n`)

// compareOutput checks that both programs print the same, including warnings. It may ignore the
// order of lines.
func (o oracle) compareOutput(stdin, command string, ignoreOrder bool) string {
	o.t.Helper()
	if err := os.WriteFile(o.file, []byte(stdin), 0o600); err != nil {
		o.t.Fatal(err)
	}
	want, err := plane.KubectlCombinedOutput(o.t.Context(), strings.Fields(strings.Replace(command, "-f -", "-f "+o.file, 1))...)
	if err != nil {
		o.t.Fatalf("%v", err)
	}
	want = kubectlOnlyLines.ReplaceAll(want, nil)
	code, got := o.run(stdin, command)
	lines := func(text string) []string {
		all := strings.Split(strings.TrimRight(text, "\n"), "\n")
		if ignoreOrder {
			slices.Sort(all)
		}
		return all
	}
	if code != 0 || !slices.Equal(lines(got), lines(string(want))) {
		o.t.Errorf("$ vedette %s\n%s(exit code %d)\n$ kubectl %s\n%s", command, got, code, command, want)
	}
	return got
}

func flagsConfigMap(name, colour string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: flags\n  labels: {part: flags}\ndata: {sky: " + colour + "}\n"
}

// TestOutputMatchesKubectl compares vedette's output and effects with kubectl's in the same
// cluster.
func TestOutputMatchesKubectl(t *testing.T) {
	h := start(t, agent.Account{Name: "one"}, redact.Config{})
	h.awaitLive(12)
	v := oracle{buildCLI(t, "http://"+h.srv.REST().String()), filepath.Join(t.TempDir(), "manifests.yaml")}
	service := "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: flags\n  labels: {part: flags}\nspec:\n  ports: [{port: PORT}]\n"
	v.wantOutput("namespace/flags created", "apiVersion: v1\nkind: Namespace\nmetadata: {name: flags}", "apply -f -")

	for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet"} {
		for _, image := range []string{"example.com/m:1", "example.com/m:2"} {
			manifest := fullWorkload(kind, image)
			if _, out := v.run(manifest, "apply -f - --server-side --force-conflicts"); !strings.Contains(out, "serverside-applied") {
				t.Fatal(out)
			}
			v.awaitRevision(kind, map[string]string{"example.com/m:1": "1", "example.com/m:2": "2"}[image])
		}
		for _, revision := range []string{"1", "2"} {
			out := v.compareOutput("", "rollout history "+strings.ToLower(kind)+"/rich -n flags --revision "+revision, false)
			if !strings.Contains(out, "example.com/m:"+revision) {
				t.Errorf("revision %s: got %s", revision, out)
			}
		}
	}
	v.compareOutput("", "scale deployment/rich --replicas 5 -n flags --dry-run=server", false)
	v.compareOutput("", "rollout undo deployment/rich -n flags --dry-run=server", false)
	v.compareOutput(fullWorkload("Deployment", "example.com/m:3"), "apply -f - --server-side --force-conflicts --dry-run=server", false)

	web := func(port string) string { return strings.Replace(service, "PORT", port, 1) }
	v.compareOutput(web("80"), "apply -f - --dry-run=server", false)
	v.wantOutput("service/web created", web("80"), "apply -f -")
	v.compareOutput(web("80"), "apply -f - --dry-run=server", false)
	v.compareOutput(web("81"), "apply -f - --dry-run=server", false)
	v.wantOutput("service/web unchanged", web("80"), "apply -f -")

	endpoints := "---\napiVersion: v1\nkind: Endpoints\nmetadata: {name: web, namespace: flags, labels: {part: old}}\n"
	twice := endpoints + strings.Replace(endpoints, "name: web", "name: web-2", 1)
	deprecated := "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\n"
	v.compareOutput(twice, "apply -f - --dry-run=server", false)
	v.wantOutput("endpoints/web created\nendpoints/web-2 created", twice, "apply -f -")
	for _, command := range []string{"apply -f -", "apply -f - --server-side --force-conflicts", "delete -f - --dry-run=server"} {
		if out := v.compareOutput(twice, command, false); strings.Count(out, deprecated) != 1 {
			t.Errorf("$ vedette %s\n%s", command, out)
		}
	}

	misspelt := "---\napiVersion: v1\nkind: Service\nmetadata: {name: misspelt, namespace: flags}\nspec: {ports: [{port: 80, prot: TCP}], selectors: {a: b}}\n"
	v.compareOutput(misspelt, "apply -f - --validate=warn --dry-run=server", false)
	warnings := "Warning: unknown field \"spec.ports[0].prot\"\nWarning: unknown field \"spec.selectors\"\nservice/misspelt "
	v.wantOutput(warnings+"created", misspelt, "apply -f - --validate=warn")
	v.wantOutput(warnings+"unchanged", misspelt, "apply -f - --validate=warn") // kubectl prints configured, because its patch is not empty

	v.wantOutput("configmap/old created", flagsConfigMap("kept", "blue")+flagsConfigMap("old", "blue"), "apply -f - --prune -l part=flags --prune-allowlist core/v1/ConfigMap")
	kept := flagsConfigMap("kept", "red")
	code, pruned := v.run(kept, "apply -f - --prune -l part=flags --dry-run=server -n flags") // kubectl keeps what was applied server-side
	for line := range strings.Lines(deprecated + "configmap/kept configured (server dry run)\nservice/web pruned (server dry run)\nconfigmap/old pruned (server dry run)\n") {
		if code != 0 || !strings.Contains(pruned, line) {
			t.Errorf("prune as a dry run: got %d %s, want %s", code, pruned, line)
		}
	}
	v.wantOutput("configmap/old pruned", kept, "apply -f - --prune -l part=flags --prune-allowlist core/v1/ConfigMap")
	v.wantOutput("service/web pruned", kept, "apply -f - --prune -l part=flags")

	v.compareOutput("", "delete configmaps --all -n flags --dry-run=server", true)
	v.compareOutput("", "delete configmaps --field-selector metadata.name=kept -A --dry-run=server --grace-period 0 --force", false)
	v.compareOutput(kept+web("80"), "delete -f - --dry-run=client", false)
	v.compareOutput(kept, "delete -f - --dry-run=server", false)
	v.wantOutput(`configmap "kept" deleted from flags namespace`, "", "delete configmaps -A --field-selector metadata.name=kept")
	v.wantOutput(`deployment.apps "rich" deleted from flags namespace`, "", "delete deployments --all -n flags")
	if code, out := v.run("", "ops --verb prune"); code != 0 || !strings.Contains(out, "prune (dry run)") || !strings.Contains(out, "flags (part=flags)") {
		t.Errorf("history: got %d %s", code, out)
	}
}

// awaitRevision waits until a workload has a revision.
func (o oracle) awaitRevision(kind, number string) {
	o.t.Helper()
	list, revisionOf := "replicasets", func(object controlplane.Object) any {
		annotations, _ := object["metadata"].(controlplane.Object)["annotations"].(controlplane.Object)
		return annotations["deployment.kubernetes.io/revision"]
	}
	if kind != "Deployment" {
		list, revisionOf = "controllerrevisions", func(object controlplane.Object) any {
			owners, _ := object["metadata"].(controlplane.Object)["ownerReferences"].([]any)
			if owners[0].(controlplane.Object)["kind"] != kind {
				return nil
			}
			return fmt.Sprint(object["revision"])
		}
	}
	err := plane.Await(o.t.Context(), "/apis/apps/v1/namespaces/flags/"+list, func(object controlplane.Object) bool {
		items, _ := object["items"].([]any)
		return slices.ContainsFunc(items, func(item any) bool { return revisionOf(item.(controlplane.Object)) == number })
	})
	if err != nil {
		o.t.Fatal(err)
	}
}
