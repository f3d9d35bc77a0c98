package servers

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
)

// heldRequests is a proxy in front of the control plane. It holds one request that changes an object.
type heldRequests struct {
	*httptest.Server
	forward *httputil.ReverseProxy

	mu   sync.Mutex
	next *heldRequest
}

// heldRequest is a request that is held before the cluster has it, or before its answer is passed on.
type heldRequest struct {
	object  string
	isAfter bool
	reached chan struct{} // closed when it is held
	resume  chan struct{} // closed by the test
}

func newHeldRequests(t *testing.T) *heldRequests {
	t.Helper()
	target, err := url.Parse(plane.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &heldRequests{forward: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: plane.Client().Transport,
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}} // agents that end abort their requests
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *heldRequests) hold(object string, isAfter bool) *heldRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = &heldRequest{object: object, isAfter: isAfter, reached: make(chan struct{}), resume: make(chan struct{})}
	return p.next
}

// take returns what holds a request; nil if nothing does.
func (p *heldRequests) take(r *http.Request, body []byte) *heldRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.next
	if held == nil || r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+held.object) && !bytes.Contains(body, []byte(`"name":"`+held.object+`"`)) {
		return nil
	}
	p.next = nil
	return held
}

func (p *heldRequests) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // also watches
		p.forward.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	held := p.take(r, body)
	if held == nil {
		p.forward.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	if held.isAfter {
		p.forward.ServeHTTP(answer, r)
	}
	close(held.reached)
	select {
	case <-held.resume:
	case <-r.Context().Done(): // the agent has gone
		return
	}
	if !held.isAfter {
		p.forward.ServeHTTP(w, r)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the agent may have gone
}

// startAgents starts two replicas of an agent that reach the cluster through a proxy.
func (f *fleet) startAgents(account vedette.AccountName, proxy *heldRequests, kinds ...string) {
	f.t.Helper()
	kubeconfig := filepath.Join(f.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`, proxy.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	for _, replica := range []string{"a", "b"} {
		id := vedette.AgentID(string(account) + replica)
		a := agent.New(agent.Config{Uplink: uplink.Config{Target: f.grpc, Creds: insecure.NewCredentials(), Agent: id},
			Accounts: []agent.Account{{Name: account, Access: kube.Access{KubeconfigFile: kubeconfig}, Selection: watch.Selection{Kinds: kinds}}}},
			f.logger(string(id)))
		f.t.Cleanup(runInBackground(f.t, a.Run))
	}
}

// taskAnswer is what Orca reads of a task.
type taskAnswer struct {
	OwnerID string
	Status  struct {
		Status            string
		Completed, Failed bool
	}
	History       []struct{ Phase, Status string }
	ResultObjects []any
}

// submit starts a task at a server.
func (f *fleet) submit(server int, operations []object) (id string) {
	f.t.Helper()
	var started struct{ ID string }
	if status := f.request(server, http.MethodPost, "/kubernetes/ops", operations, &started); status != http.StatusOK || started.ID == "" {
		f.t.Fatalf("submit: got %d", status)
	}
	return started.ID
}

func (f *fleet) task(server int, id string) (answer taskAnswer) {
	f.request(server, http.MethodGet, "/task/"+id, nil, &answer)
	return answer
}

// deployed is what a test deploys: six manifests, and a deployment that is scaled.
type deployed struct {
	configs     []string // versioned
	plain       string   // a ConfigMap without versions
	deployments []string
	scaled      string
}

func newDeployed(suffix string) deployed {
	return deployed{configs: []string{"one-" + suffix, "slow-" + suffix, "two-" + suffix}, plain: "plain-" + suffix,
		deployments: []string{"web-" + suffix, "idle-" + suffix}, scaled: "web-" + suffix}
}

func (d deployed) operations(account vedette.AccountName) []object {
	var manifests []object
	config := func(name string, annotations object) object {
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": "default", "annotations": annotations},
			"data": object{"value": name}}
	}
	for _, name := range d.configs {
		manifests = append(manifests, config(name, object{}))
	}
	manifests = append(manifests, config(d.plain, object{"strategy.spinnaker.io/versioned": "false"}))
	for _, name := range d.deployments {
		m := deployment(name)
		m["metadata"].(object)["namespace"] = "default"
		manifests = append(manifests, m)
	}
	return []object{
		{"deployManifest": object{"account": account, "moniker": object{"app": "tasks"}, "manifests": manifests}},
		{"scaleManifest": object{"account": account, "manifestName": "deployment " + d.scaled, "location": "default", "replicas": 1}},
	}
}

// versions returns the resourceVersions of all ConfigMaps, and the generations of all deployments, that were deployed.
func (d deployed) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	var list struct {
		Items []struct {
			Metadata struct {
				Name, ResourceVersion string
				Generation            int
			}
		}
	}
	suffix := d.plain[len("plain"):]
	for _, path := range []string{"/api/v1/namespaces/default/configmaps", "/apis/apps/v1/namespaces/default/deployments"} {
		if err := plane.Get(t.Context(), path, &list); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if !strings.Contains(o.Metadata.Name, suffix) {
				continue
			}
			versions[o.Metadata.Name] = o.Metadata.ResourceVersion
			if o.Metadata.Generation > 0 {
				versions[o.Metadata.Name] = fmt.Sprint("generation ", o.Metadata.Generation)
			}
		}
		list.Items = nil
	}
	return versions
}

// check checks that each object is there once, and was changed once.
func (d deployed) check(t *testing.T, got map[string]string) {
	t.Helper()
	want := []string{d.plain}
	for _, name := range d.configs {
		want = append(want, name+"-v000")
	}
	want = append(want, d.deployments...)
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("got the objects %v, want %v", names, want)
	}
	for _, name := range d.deployments {
		generation := "generation 1"
		if name == d.scaled {
			generation = "generation 2"
		}
		if got[name] != generation {
			t.Errorf("deployment %s: got %s, want %s", name, got[name], generation)
		}
	}
}

// checkHistory checks that the history of a task has each manifest once.
func (d deployed) checkHistory(t *testing.T, answer taskAnswer) {
	t.Helper()
	count := map[string]int{}
	for _, line := range answer.History {
		count[line.Status]++
	}
	names := []string{"configMap " + d.plain}
	for _, name := range d.configs {
		names = append(names, "configMap "+name+"-v000")
	}
	for _, name := range d.deployments {
		names = append(names, "deployment "+name)
	}
	for _, name := range names {
		if n := count["Deploy manifest task completed successfully for manifest "+name+" in account tasks"]; n != 1 {
			t.Errorf("the history has %s %d times: %+v", name, n, answer.History)
		}
	}
	if count["Scale operation completed successfully"] != 1 || count["Orchestration completed."] != 2 {
		t.Errorf("the history is not complete: %+v", answer.History)
	}
}

// TestTasksGoOn kills and freezes the server of a task in the middle of it, while the cluster takes its time for a versioned ConfigMap, a
// deployment, or a scaling. Another server goes on, and everything takes effect once.
func TestTasksGoOn(t *testing.T) {
	onSharedDatabasesAtOnce(t, func(t *testing.T, url string) {
		f := newFleet(t, url, 3, 0)
		proxy := newHeldRequests(t)
		f.startAgents("tasks", proxy, "ConfigMap", "Deployment")
		f.await("the agents", func() bool {
			var out outcome
			op := configMap("ready", "x")
			op["account"], op["timeout"] = "tasks", "5s"
			return f.request(2, http.MethodPost, "/vedette/v1/operations", op, &out) == http.StatusOK && out.State == "done"
		})
		round := 0
		for _, fault := range []string{"kill -9", "SIGSTOP for 10 s", "stop"} {
			for _, held := range []struct {
				what    func(deployed) string
				isAfter bool
			}{
				{func(d deployed) string { return d.configs[1] + "-v000" }, true},
				{func(d deployed) string { return d.deployments[1] }, false},
				{func(d deployed) string { return d.scaled + "/scale" }, true},
			} {
				round++
				accepting, asked := round%3, (round+1)%3
				d := newDeployed(fmt.Sprintf("%s-%d", strings.ToLower(filepath.Base(t.Name())), round))
				object := held.what(d)
				h := proxy.hold(object, held.isAfter)
				id := f.submit(accepting, d.operations("tasks"))
				<-h.reached
				before := f.task(asked, id)
				began := time.Now()
				s := f.servers[accepting]
				var waking sync.WaitGroup
				t.Cleanup(waking.Wait)
				switch fault {
				case "kill -9":
					s.Kill()
				case "SIGSTOP for 10 s":
					s.Pause()
					waking.Go(func() { // even if the task has not ended: the load balancer sends agents to a frozen server, too
						time.Sleep(10 * time.Second)
						s.Resume()
					})
				case "stop":
					s.Stop()
				}
				stopped := time.Since(began)
				close(h.resume)
				var answer taskAnswer
				f.await("the end of the task", func() bool { answer = f.task(asked, id); return answer.Status.Completed })
				gap := time.Since(began)
				if answer.Status.Failed {
					t.Fatalf("%s at %s: got %+v", fault, object, answer)
				}
				got := d.versions(t)
				d.check(t, got)
				d.checkHistory(t, answer)
				if before.Status.Completed || len(before.History) == 0 {
					t.Errorf("%s at %s: another server answered %+v while the task ran", fault, object, before)
				}
				t.Logf("%s at %s (held after the effect: %v): %v until the task has ended at %s, %v of them until the server had ended", fault, object,
					held.isAfter, gap.Round(time.Millisecond), answer.OwnerID, stopped.Round(time.Millisecond))
				if fault == "SIGSTOP for 10 s" {
					waking.Wait()
					f.await("the frozen server to end", func() bool { return s.Exited() != nil })
					if later := d.versions(t); !maps.Equal(later, got) {
						t.Errorf("the server that woke has changed %v to %v", got, later)
					}
				}
				s.Start()
				f.awaitReady(accepting)
			}
		}
	})
}
