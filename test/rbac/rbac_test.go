package rbac

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/programs"
)

// allRights makes the test remove each right. Otherwise it removes one of each verb.
var allRights = flag.Bool("all", false, "remove each right, not one of each verb")

type object = map[string]any

var (
	plane *controlplane.Plane
	bin   string
	audit string // the API server's log of the accounts' requests
	rest  string // URL of the server
)

const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
	"rules": [{"level": "Metadata", "userGroups": ["agents-under-test"]}, {"level": "None"}]}`

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vedette-rbac-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin, audit = dir, filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "policy.json")
	err = os.WriteFile(policy, []byte(auditPolicy), 0o600)
	if err == nil {
		err = programs.Build(context.Background(), bin, "vedette-agent", "vedette-server")
	}
	if err == nil {
		plane, err = controlplane.Start(context.Background(), controlplane.Options{Controllers: true, Log: os.Stderr,
			APIServerFlags: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + audit, "--audit-log-mode=blocking"}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = plane.Stop() }()
	return m.Run()
}

// scenario is a configuration of an account, and how its rights are printed.
type scenario struct {
	name           string
	kinds          []string // configured kinds; empty for those by default
	onlyNamespaced bool     // restricted to a namespace
	readOnly       bool
	flags          []string // of vedette-agent rbac
}

// has reports whether the account watches or changes a kind.
func (s scenario) has(k testKind) bool {
	if len(s.kinds) == 0 {
		return true
	}
	return slices.Contains(s.kinds, k.parsed().Name)
}

const watchedKinds = "ReplicaSet,Service,Ingress,DaemonSet,Deployment,Pod,StatefulSet,Job,CronJob,NetworkPolicy,Namespace,CustomResourceDefinition"
const changedKinds = "ConfigMap,Secret,PersistentVolumeClaim,ServiceAccount,HorizontalPodAutoscaler,PodDisruptionBudget"

// The kinds are those of the chart, whose roles tools/chart compares with what is printed.
var scenarios = []scenario{
	{name: "all-kinds", flags: []string{"--kinds", watchedKinds, "--change", changedKinds}},
	{name: "kinds", kinds: []string{"Deployment", "Pod"}},
	{name: "sets", kinds: []string{"StatefulSet", "DaemonSet"}},
	{name: "namespace", kinds: []string{"Deployment", "Pod"}, onlyNamespaced: true},
	{name: "readonly", kinds: []string{"Deployment", "DaemonSet", "Pod"}, readOnly: true, flags: []string{"--read-only"}},
}

// account is an account whose user lacks at most one right.
type account struct {
	scenario
	name       string
	namespace  string
	kubeconfig string
	missing    right // of the printed rights; zero for none
}

func newAccount(t *testing.T, s scenario, name string) *account {
	t.Helper()
	a := &account{scenario: s, name: name, namespace: name}
	var err error
	a.kubeconfig, err = plane.UserKubeconfig(name, "agents-under-test")
	must(t, err)
	ensure(t, "/api/v1/namespaces", object{"metadata": object{"name": a.namespace}})
	return a
}

// settings returns the account in the agent's configuration.
func (a *account) settings() object {
	o := object{"name": a.name, "kubeconfigFile": a.kubeconfig}
	if len(a.kinds) > 0 {
		o["kinds"] = a.kinds
	}
	if a.onlyNamespaced {
		o["namespaces"], o["onlyNamespacedResources"] = []string{a.namespace}, true
	}
	return o
}

// printedRights returns what vedette-agent rbac prints for the account.
func (a *account) printedRights(t *testing.T) []right {
	t.Helper()
	config := writeConfig(t, object{"kubernetes": object{"accounts": []any{a.settings()}}})
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "vedette-agent"), append([]string{"rbac", "--config", config}, a.flags...)...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	must(t, err)
	return parseRights(t, out)
}

// TestPrintedRulesAreSufficientAndMinimal runs an agent under exactly the rules that are printed, and for rights of them an account
// whose user lacks that one.
func TestPrintedRulesAreSufficientAndMinimal(t *testing.T) {
	servePodMetrics(t)
	var complete, incomplete []*account
	rights := map[*account][]right{}
	for _, s := range scenarios {
		a := newAccount(t, s, s.name)
		rights[a] = a.printedRights(t)
		grant(t, a.name, rights[a])
		complete = append(complete, a)
		removed := map[string]bool{}
		for i, missing := range rights[a] {
			if !*allRights && (removed[missing.verb] || s.name != "all-kinds") {
				continue
			}
			removed[missing.verb] = true
			b := newAccount(t, s, fmt.Sprintf("%s-%d", s.name, i))
			b.missing = missing
			b.missing.namespace = strings.Replace(missing.namespace, a.namespace, b.namespace, 1)
			grant(t, b.name, without(inNamespace(rights[a], a.namespace, b.namespace), b.missing))
			incomplete = append(incomplete, b)
		}
	}
	awaitRights(t, slices.Concat(incomplete, complete))
	startPrograms(t, slices.Concat(complete, incomplete))
	users := map[string]map[right][]exercise{}
	for _, a := range complete {
		users[a.scenario.name] = checkSufficient(t, a, rights[a])
	}
	for _, spec := range vedette.Verbs() {
		if !executed[spec.Verb] {
			t.Errorf("no exercise has the verb %s", spec.Verb)
		}
	}
	for _, b := range incomplete {
		original := b.missing
		original.namespace = strings.Replace(original.namespace, b.namespace, b.scenario.name, 1)
		checkNeeded(t, b, users[b.scenario.name][original])
	}
}

// inNamespace returns rights in a namespace as rights in another one.
func inNamespace(rights []right, from, to string) (moved []right) {
	for _, r := range rights {
		if r.namespace == from {
			r.namespace = to
		}
		moved = append(moved, r)
	}
	return moved
}

// checkSufficient runs all exercises, none of which may be refused, and returns which of them use each right. A right that none
// uses is an error.
func checkSufficient(t *testing.T, a *account, rights []right) map[right][]exercise {
	t.Helper()
	users := map[right][]exercise{}
	exercises := a.exercises()
	for _, e := range exercises {
		before := len(requestsOf(t, a.name))
		e.prepare(t, a)
		if err := e.run(t, a); err != nil {
			t.Errorf("account %s, %s: %v", a.name, e.name, err)
		}
		for i, r := range requestsOf(t, a.name) {
			if i < before && !slices.Contains(e.resources, r.resource()) {
				continue
			}
			for _, right := range rights {
				if r.needs(right) && !slices.ContainsFunc(users[right], func(o exercise) bool { return o.name == e.name }) {
					users[right] = append(users[right], e)
				}
			}
		}
	}
	for _, r := range requestsOf(t, a.name) {
		// An account of some namespaces asks for what lies outside of them, and does without.
		if r.Response.Code == http.StatusForbidden && !(a.onlyNamespaced && isClusterScoped[r.resource()]) {
			t.Errorf("account %s: the printed rules do not allow %s", a.name, r)
		}
	}
	for _, right := range rights {
		if len(users[right]) == 0 {
			t.Errorf("account %s: nothing needs the right to %s", a.name, right)
		}
	}
	t.Logf("account %s: %d exercises used %d of %d rights", a.name, len(exercises), len(users), len(rights))
	return users
}

var isClusterScoped = map[string]bool{"namespaces": true, "customresourcedefinitions": true, "apiservices": true}

// checkNeeded checks that something is refused without a right.
func checkNeeded(t *testing.T, a *account, users []exercise) {
	t.Helper()
	for _, e := range users {
		e.prepare(t, a)
		err := e.run(t, a)
		if isForbidden(err) {
			t.Logf("%s: without the right to %s, %q fails: %v", a.scenario.name, a.missing, e.name, err)
			return
		}
		if err != nil {
			t.Errorf("%s: without the right to %s, %q fails for another reason: %v", a.scenario.name, a.missing, e.name, err)
		}
	}
	t.Errorf("%s: nothing breaks without the right to %s", a.scenario.name, a.missing)
}

// servePodMetrics makes the API server serve the usage of pods, as a metrics server does.
func servePodMetrics(t *testing.T) {
	t.Helper()
	must(t, plane.Create(t.Context(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{
		"metadata": object{"name": "pods.metrics.k8s.io", "annotations": object{"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": object{"group": "metrics.k8s.io", "scope": "Namespaced", "names": object{"plural": "pods", "kind": "PodMetrics", "listKind": "PodMetricsList"},
			"versions": []any{object{"name": "v1beta1", "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}))
	must(t, plane.Await(t.Context(), "/apis/metrics.k8s.io/v1beta1", func(controlplane.Object) bool { return true }))
}

// awaitRights waits until the API server knows the rights of all accounts. It learns of them in order, so the last one counts.
func awaitRights(t *testing.T, accounts []*account) {
	t.Helper()
	last := accounts[len(accounts)-1]
	await(t, "the rights of "+last.name, func() bool {
		out, err := plane.KubectlCombinedOutput(t.Context(), "auth", "can-i", "list", "deployments.apps", "--all-namespaces", "--as", last.name)
		return err == nil && strings.HasPrefix(string(out), "yes")
	})
}

// startPrograms starts a server and an agent of all accounts.
func startPrograms(t *testing.T, accounts []*account) {
	t.Helper()
	dir := t.TempDir()
	restPort, err := ports.Reserve()
	must(t, err)
	grpcPort, err := ports.Reserve()
	must(t, err)
	healthPort, err := ports.Reserve()
	must(t, err)
	rest = fmt.Sprintf("http://127.0.0.1:%d", restPort)
	start := func(name string, config object) {
		program := &process.Program{T: t, Name: name, Path: filepath.Join(bin, name), Args: []string{"--config", writeConfig(t, config)}, Log: filepath.Join(dir, name+".log")}
		program.Start()
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(program.Process().Tail())
			}
		})
	}
	start("vedette-server", object{"dataDir": dir, "server": object{"port": restPort}, "grpc": object{"server": object{"port": grpcPort}},
		"sql": object{"url": "sqlite:" + filepath.Join(dir, "vedette.db")}})
	settings := make([]any, len(accounts))
	for i, a := range accounts {
		settings[i] = a.settings()
	}
	start("vedette-agent", object{"agentId": "agent", "server": object{"host": "127.0.0.1", "port": healthPort},
		"clouddriver": object{"grpc": fmt.Sprintf("127.0.0.1:%d", grpcPort), "insecure": true, "noProxy": true},
		"kubernetes":  object{"noProxy": true, "accounts": settings}})
	await(t, "the server", func() bool { return getJSON(t, "/vedette/v1/version", nil) == nil })
}

func writeConfig(t *testing.T, config object) string {
	t.Helper()
	raw, err := json.Marshal(config)
	must(t, err)
	file := filepath.Join(t.TempDir(), "config.yml")
	must(t, os.WriteFile(file, raw, 0o600))
	return file
}

// requestsOf returns the requests of a user so far.
func requestsOf(t *testing.T, user string) (requests []request) {
	t.Helper()
	file, err := os.Open(audit)
	must(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	marker := `"username":"` + user + `"`
	for lines.Scan() {
		if !strings.Contains(lines.Text(), marker) {
			continue
		}
		var r request
		if json.Unmarshal(lines.Bytes(), &r) == nil { // the last line may be incomplete
			requests = append(requests, r)
		}
	}
	must(t, lines.Err())
	return requests
}

func getJSON(t *testing.T, path string, into any) error {
	t.Helper()
	resp, err := http.Get(rest + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// ensure creates an object unless it exists.
func ensure(t *testing.T, list string, o object) {
	t.Helper()
	err := plane.Create(t.Context(), list, maps.Clone(o))
	if status, ok := errors.AsType[*controlplane.StatusError](err); ok && status.Code == http.StatusConflict {
		return
	}
	must(t, err)
}

// await polls until done returns true, for at most two minutes.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("timeout waiting for %s", what)
		case <-tick.C:
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
