package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/node"
)

// TestServers replaces one server by three that share a database, and these by others, while clients use them. Nothing is lost, done twice or
// deleted, and no agent connects more often than servers end.
func TestServers(t *testing.T) {
	c := newCluster(t, "servers") // before the database, so that it is in the namespaces of the node
	settings := []string{"agent.account.name=prod", "agent.replicas=2", "agent.rbac.kinds={Namespace,Pod,ConfigMap}", "server.persistence.enabled=false",
		"server.database.url=" + sharedDatabase(t)}
	several := append(slices.Clone(settings), "server.replicas=3", "server.config.kubesvc.cluster=kubernetes", "agent.config.balanceConnection=true")
	c.create("/api/v1/namespaces/servers/configmaps", object{"metadata": object{"name": "fixed"}, "data": object{"value": "does not change"}})
	c.create("/api/v1/namespaces/servers/serviceaccounts", object{"metadata": object{"name": "counter"}, "imagePullSecrets": []object{{"name": "none"}}})
	c.install("vedette", append(settings, "image.tag="+oldVersion)...)
	s := &servers{cluster: c, base: "http://" + c.service("spin-clouddriver-vedette")}
	s.awaitAccount()

	// One server uses the database alone, so it must end before the first of several is ready. Helm deletes it after it has created these.
	t.Run("from the version before to three", func(t *testing.T) { s.in(t).upgrade(1, "", several...) })
	t.Run("they know each other", func(t *testing.T) { s.in(t).checkPeers() })
	t.Run("a changed value", func(t *testing.T) {
		s.in(t).upgrade(3, "counter", append(several, "server.podAnnotations.turn=second")...)
	})
	t.Run("the next version", func(t *testing.T) {
		s.in(t).upgrade(3, "counter", append(several, "server.image.tag="+nextVersion)...)
	})
	t.Run("nodes are drained", func(t *testing.T) { s.in(t).drainNodes() })
	t.Run("back to one", func(t *testing.T) { s.in(t).upgrade(3, "", settings...) })
	c.helm("uninstall", "vedette", "--wait")
}

// sharedDatabase starts a PostgreSQL that Pods reach, and returns its URL.
func sharedDatabase(t *testing.T) string {
	t.Helper()
	rules, err := os.CreateTemp("", "vedette-hba-") //nolint:usetesting // the database's user must be able to read it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(rules.Name()) })
	_, err = rules.WriteString("host all all all trust\n")
	if err = errors.Join(err, rules.Chmod(0o644), rules.Close()); err != nil {
		t.Fatal(err)
	}
	server := databases.StartPostgreSQL(t, databases.Options{Settings: []string{"listen_addresses=*", "hba_file=" + rules.Name()}})
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.Host = node.Address.String() + ":" + address.Port()
	return address.String()
}

// servers are those of one release.
type servers struct {
	*cluster
	base string // of the REST API, at the Service
}

func (s *servers) in(t *testing.T) *servers { return &servers{cluster: s.cluster.in(t), base: s.base} }

func (s *servers) awaitAccount() {
	s.t.Helper()
	s.await("the account is Ready", func() error { return s.accountIsReady("prod", "--server", s.base) })
}

// load starts clients that read and operate at the Service.
func (s *servers) load(counter string) *load {
	s.t.Helper()
	l := startLoad(s.t, &load{base: s.base, account: "prod", namespace: s.namespace, counter: counter,
		prefix: regexp.MustCompile("[^a-z]+").ReplaceAllString(strings.ToLower(s.t.Name()), "-"), path: fixedObject, wrong: isNotFixed})
	s.await("the load runs", l.hasRun)
	return l
}

// readers starts clients that read, and use connections again.
func (s *servers) readers() *load {
	s.t.Helper()
	l := startLoad(s.t, &load{base: s.base, pooled: true, path: fixedObject, wrong: isNotFixed})
	s.await("the readers run", l.hasRun)
	return l
}

const fixedObject = "/manifests/prod/servers/configMap%20fixed"

func isNotFixed(status int, body string) error {
	if status != http.StatusOK || !strings.Contains(body, "does not change") {
		return errors.New("the object is there, and has not changed")
	}
	return nil
}

// upgrade changes the release under load, and checks what clients and agents have noticed of the end of some servers.
func (s *servers) upgrade(ended int, counter string, settings ...string) {
	s.t.Helper()
	before := s.names()
	l, pooled := s.load(counter), s.readers()
	s.duringEnds(ended, func() {
		s.helm(append([]string{"upgrade", "vedette", chart, "--wait", "--timeout", timeout.String()}, values(settings)...)...)
		s.await("the servers from before have ended", func() error { return s.areGone(before) })
	})
	s.awaitAccount()
	s.t.Logf("vedette agents:\n%s", s.vedette("agents", "--server", s.base))
	s.finish(l)
	s.finish(pooled)
	for _, answered := range []*load{l, pooled} {
		if counter != "" && len(answered.unanswered) > 0 { // otherwise servers do not overlap
			s.t.Errorf("requests without an answer, although servers are there all the time: %v", answered.unanswered)
		}
	}
	s.await("the store equals the cluster", func() error { return s.storeIsEqual(s.namespace, "--account", "prod", "--server", s.base) })
}

// names returns the Pods of servers that are not about to end.
func (s *servers) names() (names []string) {
	for _, p := range s.pods(serverPods) {
		if p.Metadata.DeletionTimestamp == "" {
			names = append(names, p.Metadata.Name)
		}
	}
	return names
}

func (s *servers) areGone(names []string) error {
	for _, p := range s.pods(serverPods) {
		if slices.Contains(names, p.Metadata.Name) {
			return fmt.Errorf("%s is there", p.Metadata.Name)
		}
	}
	return nil
}

// duringEnds does something that ends some servers. Each must end by itself, within its grace period, and no agent that stays may connect more
// often than once for each of them.
func (s *servers) duringEnds(ended int, do func()) {
	s.t.Helper()
	connections := s.connections()
	ctx, stop := context.WithCancel(s.ctx)
	ends := map[string]*end{}
	var watching sync.WaitGroup
	watching.Go(func() { s.watchEnds(ctx, ends) })
	first := s.names()[0]
	shown, said := s.follow("get", "pods", "-l", "app.kubernetes.io/component=server", "--watch"), s.follow("logs", first, "--follow")
	do()
	stop()
	watching.Wait()
	s.t.Logf("kubectl get pods --watch:\n%skubectl logs %s --follow:\n%s", shown(), first, said())
	for name, e := range ends {
		s.t.Logf("%s was there for %v after it was asked to end, and ended with %v", name, e.last.Sub(e.first).Round(100*time.Millisecond), e.codes)
		if took := e.last.Sub(e.first); took >= e.grace || slices.ContainsFunc(e.codes, func(code int) bool { return code != 0 }) {
			s.t.Errorf("%s was killed: it was there for %v, and ended with %v", name, took, e.codes)
		}
	}
	if len(ends) < ended {
		s.t.Errorf("%d servers have ended, want %d", len(ends), ended)
	}
	for agent, n := range s.connections() {
		if had, stayed := connections[agent]; stayed && n-had > len(ends) {
			s.t.Errorf("agent %s has connected %d times while %d servers ended", agent, n-had, len(ends))
		} else if stayed {
			s.t.Logf("agent %s has connected %d times while %d servers ended", agent, n-had, len(ends))
		}
	}
}

// end is what was seen of the end of a Pod.
type end struct {
	grace       time.Duration // after which it is killed
	first, last time.Time
	codes       []int // with which its containers have ended
}

func (s *servers) watchEnds(ctx context.Context, ends map[string]*end) {
	for ctx.Err() == nil {
		var list struct{ Items []podObject }
		if err := s.Plane.Get(ctx, "/api/v1/namespaces/"+s.namespace+"/pods?labelSelector="+serverPods, &list); err != nil {
			if ctx.Err() == nil {
				s.t.Errorf("look at the Pods: %v", err)
			}
			return
		}
		for _, p := range list.Items {
			if p.Metadata.DeletionTimestamp == "" {
				continue
			}
			e := ends[p.Metadata.Name]
			if e == nil {
				e = &end{first: time.Now(), grace: time.Duration(p.Metadata.DeletionGracePeriodSeconds) * time.Second}
				ends[p.Metadata.Name] = e
			}
			e.last, e.codes = time.Now(), nil
			for _, container := range p.Status.ContainerStatuses {
				if terminated := container.State.Terminated; terminated != nil {
					e.codes = append(e.codes, terminated.ExitCode)
				}
			}
		}
		pause(ctx)
	}
}

// connections returns how often each agent has connected to a server, by its Pod.
func (s *servers) connections() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, p := range s.pods(agentPods) {
		if p.Metadata.DeletionTimestamp == "" {
			counts[p.Metadata.Name] = strings.Count(s.kubectl("logs", p.Metadata.Name), "msg=connected ")
		}
	}
	return counts
}

// follow runs kubectl until the returned function is called, which returns what it has printed.
func (s *servers) follow(args ...string) (shown func() string) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.ctx)
	var out bytes.Buffer
	cmd := s.Plane.KubectlCommand(ctx, append([]string{"-n", s.namespace}, args...)...)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	end := sync.OnceFunc(func() { stop(); _ = cmd.Wait() })
	s.t.Cleanup(end)
	return func() string { end(); return out.String() }
}

// checkPeers checks that each server knows the others, that operations reach agents through them, that a request that is repeated at another
// server is recognized, and that nobody else reaches the port for servers.
func (s *servers) checkPeers() {
	s.t.Helper()
	pods := s.pods(serverPods)
	s.await("the servers list each other", func() error { return s.listEachOther(pods) })
	s.kubectl("delete", "configmap", "repeated", "--ignore-not-found")
	operation := (&load{account: "prod", namespace: s.namespace}).operation("repeated")
	tasks := map[string]string{}
	for _, p := range pods {
		at := &load{base: "http://" + p.Status.PodIP + ":7002"}
		status, body := at.request(s.ctx, http.MethodPost, "/kubernetes/ops?clientRequestId=repeated", operation)
		var task struct{ ID string }
		if err := json.Unmarshal([]byte(body), &task); err != nil || status != http.StatusOK {
			s.t.Errorf("%s: a repeated request: got %d %s (%v)", p.Metadata.Name, status, body, err)
		}
		tasks[task.ID] = p.Metadata.Name
	}
	if len(tasks) != 1 {
		s.t.Errorf("a request that was repeated at each server has started the tasks %v, want one", tasks)
	}
	s.repeatOperation(pods)
	forwarded := 0
	for _, p := range pods {
		forwarded += s.metric(p, "vedette_server_forwarded_operations_total")
	}
	if forwarded == 0 {
		s.t.Error("no server has sent an operation to another one, although two servers at least do not have the account's agent")
	}
	for name, labels := range map[string]object{"gate": {"app": "spin"}, "stranger": {"app": "other"}} {
		s.pod(name, labels)
		if _, err := s.inside(name, "dial", pods[0].Status.PodIP+":7004"); err == nil {
			s.t.Errorf("the Pod %s reaches the port for servers", name)
		}
		s.kubectl("delete", "pod", name, "--wait=false")
	}
}

// listEachOther fails unless each server lists all of them, as ready.
func (s *servers) listEachOther(pods []podObject) error {
	var want []string
	for _, p := range pods {
		want = append(want, p.Metadata.Name)
	}
	slices.Sort(want)
	for _, p := range pods {
		_, body := (&load{base: "http://" + p.Status.PodIP + ":7002"}).request(s.ctx, http.MethodGet, "/armory/clouddrivers", "")
		var list []struct {
			ID    string
			Ready bool
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			return fmt.Errorf("%s: %w: %s", p.Metadata.Name, err, body)
		}
		var got []string
		for _, server := range list {
			if server.Ready {
				got = append(got, server.ID)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s lists %s, want %q", p.Metadata.Name, body, want)
		}
	}
	return nil
}

// repeatOperation sends an operation with a manifest to each server with the same id. The digest of the manifest, by which a server recognizes
// it, needs a key that all have.
func (s *servers) repeatOperation(pods []podObject) {
	s.t.Helper()
	body := fmt.Sprintf(`{"id": "01KBZZZZZZZZZZZZZZZZZZZZZZ", "verb": "apply", "account": "prod", "manifest": {"apiVersion": "v1", "kind": "ConfigMap",
"metadata": {"name": "once", "namespace": %q}, "data": {"value": "x"}}}`, s.namespace)
	for i, p := range pods {
		at := &load{base: "http://" + p.Status.PodIP + ":7002"}
		status, answer := at.request(s.ctx, http.MethodPost, "/vedette/v1/operations", body)
		if status != http.StatusOK || !strings.Contains(answer, `"done"`) {
			s.t.Errorf("request %d, at %s: got %d %s", i+1, p.Metadata.Name, status, answer)
		}
	}
}

// metric returns the sum of a counter of a server.
func (s *servers) metric(p podObject, name string) (sum int) {
	s.t.Helper()
	answer, err := http.Get("http://" + p.Status.PodIP + ":7003/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\d+)$`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			s.t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// drainNodes evicts servers under load, as kubectl drain does. One at a time may be missing.
func (s *servers) drainNodes() {
	s.t.Helper()
	l := s.load("counter")
	names := s.names()
	s.duringEnds(2, func() {
		if err := s.evict(names[0]); err != nil {
			s.t.Fatal(err)
		}
		if err := s.evict(names[1]); err == nil || !strings.Contains(err.Error(), "disruption budget") {
			s.t.Errorf("the second of three servers may be evicted while the first is missing: %v", err)
		}
		s.await("another server is ready", func() error { return s.evict(names[1]) })
		s.await("both have ended", func() error { return s.areGone(names[:2]) })
		s.await("three servers are ready", func() error {
			if n := len(s.ready(serverPods)); n != 3 {
				return fmt.Errorf("%d servers are ready", n)
			}
			return nil
		})
	})
	s.finish(l)
	s.await("the store equals the cluster", func() error { return s.storeIsEqual(s.namespace, "--account", "prod", "--server", s.base) })
}
