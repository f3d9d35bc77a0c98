package hostile

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/programs"
)

// operatingAgentLimit is the maximum memory of an agent whose clusters attack its operations.
const operatingAgentLimit = 160 << 20

// operationAttack is an API server whose answers to operations are hostile. It is honest to feeds, which
// read all namespaces at once.
type operationAttack struct {
	name      string
	answer    attack
	operation string // the body of the request, without the account
	times     int    // how many operations run at once
	want      string // in each outcome
}

// timeout is how long an operation may take. An answer that ends must not end too late on a slow machine.
func (a *operationAttack) timeout() string {
	if a.want == "TooLarge" {
		return "1m"
	}
	return "8s"
}

const listN, objectX = "/api/v1/namespaces/n/configmaps", "/api/v1/namespaces/n/configmaps/x"

const (
	listOperation   = `"verb":"list","kind":"configmap","namespace":"n"`
	deleteOperation = `"verb":"delete","kind":"configmap","namespace":"n","labelSelector":"a=b","dryRun":true`
	getOperation    = `"verb":"get","kind":"configmap","namespace":"n","name":"x"`
	patchOperation  = `"verb":"patch","kind":"configmap","namespace":"n","name":"x","type":"json","patch":[{"op":"test","path":"/a","value":1}]`
	applyOperation  = `"verb":"apply","strategy":"client-side","manifest":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"x"}}`
)

func operationAttacks() []operationAttack {
	megabyte := strings.Repeat("x", 1<<20)
	onList, onObject := requestsPath(listN), requestsPath(objectX)
	endlessText := func(first string) func(http.ResponseWriter, *http.Request) {
		return respondRepeatedly(first, constant(megabyte), 0)
	}
	return []operationAttack{
		{"a list of 40,000 objects of 5 KB", onRequest(onList, manyConfigMaps(40_000, 5_000)), listOperation, 1, "TooLarge"},
		{"deletions by selector among 40,000 objects", onRequest(onList, manyConfigMaps(40_000, 5_000)), deleteOperation, 4, `"state":`},
		{"a list whose pages do not end", onRequest(onList, manyConfigMaps(1<<40, 50_000)), listOperation, 2, `"state":"failed"`},
		{"deletions among pages that do not end", onRequest(onList, manyConfigMaps(1<<40, 2_000)), deleteOperation, 2, `"state":"failed"`},
		{"pages without objects that do not end", onRequest(onList, endlessPages), listOperation, 2, "does not end"},
		{"one continue token", onRequest(onList, respond(`{"metadata":{"resourceVersion":"5","continue":"again"},"items":[`+configMap("x", 5, "")+`]}`)), listOperation, 2, "does not end"},
		{"a continue token of a megabyte", onRequest(onList, respond(`{"metadata":{"resourceVersion":"5","continue":"`+megabyte+`"},"items":[]}`)), deleteOperation, 2, "does not end"},
		{"a list of giant objects", onRequest(onList, respondRepeatedly(`{"metadata":{"resourceVersion":"5"},"items":[{}`, constant(`,{"metadata":{"name":"x"},"a":"`+strings.Repeat("x", 15<<20)+`"}`), 0)), listOperation, 4, `"state":"failed"`},
		{"a list of one endless object", onRequest(onList, endlessText(`{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"`)), listOperation, 4, `"state":"failed"`},
		{"an endless object", onRequest(onObject, endlessText(`{"metadata":{"name":"x`)), getOperation, 16, `"state":"failed"`},
		{"an endless error", onRequest(onObject, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			endlessText("")(w, r)
		}), getOperation, 16, `"state":"failed"`},
		{"an object of empty maps", onRequest(onObject, respond(configMap("x", 5, `,"a":[`+strings.Repeat(`{"":0},`, 2_000_000)+`0]`))), patchOperation, 8, `"state":"failed"`},
		{"an endless OpenAPI document", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/openapi/") {
				respondRepeatedly(`{"components":{"schemas":{"a":{}`, func(n int) string {
					return fmt.Sprintf(`,"a%d":{"properties":{"x":{"type":"string"}}}`, n) + strings.Repeat(" ", 100)
				}, 0)(w, r)
				return true
			}
			return onRequest(func(r *http.Request) bool { return r.URL.Path == objectX && r.Method == http.MethodGet }, respond(configMap("x", 5, "")))(w, r) && false
		}, applyOperation, 4, `"state":`},
		{"an endless list of kinds", onRequest(requestsPath("/api/v1"), respondRepeatedly(`{"kind":"APIResourceList","resources":[{}`, constant(strings.Repeat(`,{"name":"a","kind":"A","verbs":[]}`, 1000)), 0)), applyOperation, 4, `"state":"failed"`},
	}
}

// manyConfigMaps responds with the pages of a list of so many objects.
func manyConfigMaps(objects, bytes int) func(http.ResponseWriter, *http.Request) {
	data := `,"data":{"a":"` + strings.Repeat("x", bytes) + `"}`
	return func(w http.ResponseWriter, r *http.Request) {
		from, data := 0, data
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &from)
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			data = ""
		}
		to, next := min(from+500, objects), ""
		if to < objects {
			next = fmt.Sprint(to)
		}
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":%q},"items":[`, next)
		for i := from; i < to; i++ {
			if i > from {
				_, _ = io.WriteString(w, ",")
			}
			if _, err := io.WriteString(w, configMap(fmt.Sprint("c", i), 5, data)); err != nil {
				return
			}
		}
		fmt.Fprint(w, `]}`)
	}
}

// startAgent builds and starts an agent with the accounts of some clusters, and waits until all of them are live.
func startAgent(t *testing.T, s *server, clusters map[string]*apiServer) *measuredProcess {
	t.Helper()
	return startAgentOf(t, s, clusters, len(clusters), "configmap")
}

// startAgentOf is startAgent with kinds of the accounts, but for "well". It waits until some of them are live.
func startAgentOf(t *testing.T, s *server, clusters map[string]*apiServer, ready int, kinds string) *measuredProcess {
	t.Helper()
	dir := t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette-agent"); err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	fmt.Fprintf(&config, "agentId: a1\nclouddriver: {grpc: %q, insecure: true, noProxy: true}\nserver: {host: 127.0.0.1, port: 0}\nkubernetes:\n  noProxy: true\n  accounts:\n", s.grpc)
	for name, cluster := range clusters {
		kubeconfig := filepath.Join(dir, name)
		if err := os.WriteFile(kubeconfig, cluster.account(name).Access.KubeconfigContents, 0o600); err != nil {
			t.Fatal(err)
		}
		selected := kinds
		if name == "well" {
			selected = "configmap"
		}
		fmt.Fprintf(&config, "  - {name: %q, kubeconfigFile: %q, kinds: [%s]}\n", name, kubeconfig, selected)
	}
	file := filepath.Join(dir, "agent.yml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &measuredProcess{t: t}
	a.start("agent", dir, exec.Command(filepath.Join(dir, "vedette-agent"), "--config", file))
	await(t, "the accounts are live", func() error {
		s.checkRunning()
		a.checkRunning()
		raw, err := s.get("/vedette/v1/accounts?limit=1000")
		if n := strings.Count(string(raw), `"Ready"`); err == nil && n < ready {
			err = fmt.Errorf("%d of %d accounts are ready: %s", n, ready, regexp.MustCompile(`"name":"[a-z0-9-]*","status":"[^"]*"|"message":"[^"]*"`).FindAllString(string(raw), 20))
		}
		return err
	})
	return a
}

// TestHostileAnswersToOperations lets API servers attack the operations of an agent, one after the other, while
// another account of the agent is used. The agent's memory must stay within its limit, no attack may pass
// for an answer, and the other account's operations must be served at once.
func TestHostileAnswersToOperations(t *testing.T) {
	s := startServer(t)
	healthy := startAPIServer(t, onRequest(requestsPath(objectX), respond(configMap("x", 5, ""))))
	clusters := map[string]*apiServer{"well": healthy}
	attacks := operationAttacks()
	for i, a := range attacks {
		clusters[fmt.Sprint("attacker-", i)] = startAPIServer(t, a.answer)
	}
	agent := startAgent(t, s, clusters)
	t.Logf("before: agent %d MiB, server %d MiB", agent.peak()>>20, s.peak()>>20)
	for i, a := range attacks {
		var outcomes sync.WaitGroup
		for range a.times {
			outcomes.Go(func() {
				outcome, err := s.operate(fmt.Sprintf(`{"account":"attacker-%d","timeout":%q,%s}`, i, a.timeout(), a.operation))
				text := strings.ReplaceAll(fmt.Sprint(outcome, err), `": `, `":`)
				if !strings.Contains(text, a.want) {
					t.Errorf("%s: got %.300s, want %s", a.name, text, a.want)
				}
			})
		}
		slowest := getWhile(t, s, &outcomes)
		if used := agent.peak(); used > operatingAgentLimit {
			t.Errorf("%s: got %d MiB of memory of the agent, want at most %d", a.name, used>>20, operatingAgentLimit>>20)
		}
		t.Logf("%s: agent %d MiB, server %d MiB, operations of another account took %v at most", a.name, agent.peak()>>20, s.peak()>>20, slowest.Round(time.Millisecond))
	}
	if peak := s.peak(); peak > memoryLimit {
		t.Errorf("got %d MiB of memory of the server, want at most %d", peak>>20, memoryLimit>>20)
	}
}

// getWhile runs operations of the healthy account, one after the other, until others have ended. It returns how
// long the slowest took.
func getWhile(t *testing.T, s *server, others *sync.WaitGroup) (slowest time.Duration) {
	t.Helper()
	var ended atomic.Bool
	go func() { others.Wait(); ended.Store(true) }()
	for first := true; first || !ended.Load(); first = false {
		began := time.Now()
		outcome, err := s.operate(`{"account":"well","timeout":"20s",` + getOperation + `}`)
		if err != nil || !strings.Contains(outcome, `"x"`) {
			t.Errorf("the other account: got %.300s, %v", outcome, err)
			break
		}
		slowest = max(slowest, time.Since(began))
	}
	others.Wait()
	return slowest
}

// TestHungClusterDelaysNoOther runs more reads of a cluster that does not answer, and more deletions that wait for finalizers and whose
// callers have left, than an agent has workers for one account. Another account of the agent is served at once.
func TestHungClusterDelaysNoOther(t *testing.T) {
	s := startServer(t)
	get := onRequest(requestsPath(objectX), respond(configMap("x", 5, "")))
	clusters := map[string]*apiServer{"well": startAPIServer(t, get),
		"hung": startAPIServer(t, onRequest(requestsPath(objectX), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })),
		"slow": startAPIServer(t, get)} // it confirms no deletion
	startAgent(t, s, clusters)
	var outcomes sync.WaitGroup
	leaving := http.Client{Timeout: 2 * time.Second}
	for range 70 {
		outcomes.Go(func() { _, _ = s.operate(`{"account":"hung","timeout":"20s",` + getOperation + `}`) })
		outcomes.Go(func() {
			body := `{"account":"slow","timeout":"90s","verb":"delete","kind":"configmap","namespace":"n","name":"x"}`
			response, err := leaving.Post(s.rest+"/vedette/v1/operations", "application/json", strings.NewReader(body))
			if err == nil {
				response.Body.Close()
			}
		})
	}
	slowest := getWhile(t, s, &outcomes)
	t.Logf("the slowest operation of another account took %v", slowest.Round(time.Millisecond))
	if slowest > 12*time.Second { // those that hang end after 20 s
		t.Errorf("an operation of another account took %v", slowest)
	}
	began := time.Now()
	defer func() {
		t.Logf("the deletions ended %v after the last caller had left", time.Since(began).Round(time.Millisecond))
	}()
	await(t, "the deletions whose callers have left end", func() error {
		raw, err := s.get("/vedette/v1/operations?account=slow&limit=100")
		var list struct{ Items []struct{ State string } }
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		for _, op := range list.Items {
			if op.State == "pending" {
				return fmt.Errorf("one of %d is pending", len(list.Items))
			}
		}
		if err == nil && len(list.Items) < 70 {
			err = fmt.Errorf("got %d operations: %.500s", len(list.Items), raw)
		}
		return err
	})
}

// TestHeldMemoryDelaysNoOther runs operations with large manifests in clusters that do not answer, which hold as much memory as the agent
// has for operations, and wait for more. The operations of another account are served at once.
func TestHeldMemoryDelaysNoOther(t *testing.T) {
	s := startServer(t)
	clusters := map[string]*apiServer{"well": startAPIServer(t, onRequest(requestsPath(objectX), respond(configMap("x", 5, ""))))}
	apply := fmt.Sprintf(`"verb":"apply","strategy":"server-side","manifest":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"x"},"data":{"a":"%s"}}`,
		strings.Repeat("x", 1<<20))
	var outcomes sync.WaitGroup
	for _, name := range []string{"hung-1", "hung-2", "hung-3"} {
		clusters[name] = startAPIServer(t, onRequest(requestsPath(objectX), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	}
	startAgent(t, s, clusters)
	for name := range clusters {
		if name == "well" {
			continue
		}
		for range 10 {
			outcomes.Go(func() { _, _ = s.operate(fmt.Sprintf(`{"account":%q,"timeout":"15s",%s}`, name, apply)) })
		}
	}
	slowest := getWhile(t, s, &outcomes)
	t.Logf("the slowest operation of another account took %v", slowest.Round(time.Millisecond))
	if slowest > 9*time.Second { // an operation waits 10 s for memory
		t.Errorf("an operation of another account took %v", slowest)
	}
}

// TestFrozenAgentHasNoLateEffect stops the agent's process, applies an object with a timeout, and lets the process continue after
// the deadline. The operation, which waited in a socket, must have no effect.
func TestFrozenAgentHasNoLateEffect(t *testing.T) {
	s := startServer(t)
	var writes atomic.Int32
	cluster := startAPIServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == objectX && r.Method != http.MethodGet {
			writes.Add(1)
		}
		return onRequest(requestsPath(objectX), respond(configMap("x", 5, "")))(w, r)
	})
	agent := startAgent(t, s, map[string]*apiServer{"well": cluster})
	apply := `{"account":"well","timeout":%q,"verb":"apply","strategy":"server-side","manifest":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"x"}}}`
	if outcome, err := s.operate(fmt.Sprintf(apply, "20s")); err != nil || writes.Load() != 1 {
		t.Fatalf("before: got %d writes, %s, %v", writes.Load(), outcome, err)
	}
	for _, timeout := range []string{"2s", "1s"} {
		if err := agent.Pause(); err != nil {
			t.Fatal(err)
		}
		outcome, err := s.operate(fmt.Sprintf(apply, timeout))
		if text := fmt.Sprint(outcome, err); !strings.Contains(text, "lost") {
			t.Errorf("while the agent is stopped: got %s", text)
		}
		if err := agent.Resume(); err != nil {
			t.Fatal(err)
		}
		await(t, "the agent operates again", func() error {
			_, err := s.operate(`{"account":"well","timeout":"20s",` + getOperation + `}`)
			return err
		})
	}
	if n := writes.Load(); n != 1 {
		t.Errorf("got %d writes, want 1: an operation took effect after its deadline", n)
	}
	if outcome, err := s.operate(fmt.Sprintf(apply, "20s")); err != nil || writes.Load() != 2 {
		t.Errorf("after: got %d writes, want 2: %s, %v", writes.Load(), outcome, err)
	}
}
