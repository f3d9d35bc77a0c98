package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/verify"
)

// connectedAgent is an agent of which one account has reached a cluster, and whose executor runs.
type connectedAgent struct {
	*Agent
	t        *testing.T
	outcomes chan vedette.Outcome
	executor boundExecutor
}

func newConnectedAgent(t *testing.T, handle http.HandlerFunc) *connectedAgent {
	t.Helper()
	a := New(Config{Uplink: uplink.Config{Target: "passthrough:///127.0.0.1:1", Creds: insecure.NewCredentials(), Agent: "a"},
		Accounts: []Account{{Name: "prod"}}}, slog.New(slog.DiscardHandler))
	c := &connectedAgent{Agent: a, t: t, outcomes: make(chan vedette.Outcome, 10)}
	// Nobody acknowledges the outcomes.
	x := executor.New(executor.Config{MaxWorkers: 1, StopTimeout: time.Millisecond}, a.executeMeasured, func(out vedette.Outcome) { c.outcomes <- out })
	c.executor = boundExecutor{x, &a.accounts}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	server := kubetest.NewServer(t, handle)
	cluster := kubetest.Connect(t, server, kube.Options{})
	c.reach(cluster, vedette.Cluster{UID: "blue"})
	return c
}

// reach makes a cluster that of the account.
func (c *connectedAgent) reach(cluster *kube.Cluster, identity vedette.Cluster) {
	c.t.Helper()
	if err := c.accounts.get("prod").initOperator(cluster, identity); err != nil {
		c.t.Fatal(err)
	}
}

// arrive submits an operation as the uplink does, but without a connection.
func (c *connectedAgent) arrive(op vedette.Operation) {
	c.executor.Executor.Submit(c.executor.bind(op), nil)
}

// submit submits an operation until the executor takes it, which it does once it runs.
func (c *connectedAgent) submit(op vedette.Operation) {
	for running := c.executor.Running(); c.executor.Running() == running && len(c.outcomes) == 0; {
		c.arrive(op)
	}
}

func getPod(id vedette.OperationID, cluster vedette.Cluster) vedette.Operation {
	return vedette.Operation{ID: id, Account: "prod", Cluster: cluster, Deadline: time.Now().Add(time.Minute),
		Args: vedette.GetArgs{Target: vedette.Target{Kind: "pod", Namespace: "shop", Name: "web"}}}
}

// TestOperationsAreBoundAtArrival checks that an operation whose server does not name its cluster is
// executed in the one that the account had when it arrived, or not at all.
func TestOperationsAreBoundAtArrival(t *testing.T) {
	arrived, proceed := make(chan struct{}, 10), make(chan struct{})
	var asked []string
	c := newConnectedAgent(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/shop/pods/") {
			asked = append(asked, r.URL.Path)
			arrived <- struct{}{}
			<-proceed
		}
		respondAsAPIServer(w, r)
	})
	c.submit(getPod("1", vedette.Cluster{}))
	<-arrived
	c.arrive(getPod("2", vedette.Cluster{})) // waits for the worker
	account := c.accounts.get("prod")
	c.reach(account.cluster, vedette.Cluster{UID: "green"})
	close(proceed)
	outcomes := map[vedette.OperationID]vedette.Outcome{}
	for range 2 {
		out := <-c.outcomes
		outcomes[out.ID] = out
	}
	if out := outcomes["1"]; out.State != vedette.Done {
		t.Errorf("the operation that ran: got %+v", out)
	}
	if out := outcomes["2"]; out.State != vedette.Failed || out.Status != http.StatusConflict || out.Reason != vedette.ReasonAnotherCluster {
		t.Errorf("the operation that waited: got %+v", out)
	} else if strings.Contains(out.Message, "blue") || strings.Contains(out.Message, "green") {
		t.Errorf("%q names a cluster", out.Message)
	}
	if len(asked) != 1 {
		t.Errorf("got requests %v", asked)
	}
}

// TestOperationsForAnotherCluster checks what an agent does with operations for clusters that are not the
// account's.
func TestOperationsForAnotherCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster vedette.Cluster
		reached bool
		status  int
	}{
		"the account's":                 {vedette.Cluster{UID: "blue"}, true, http.StatusOK},
		"another":                       {vedette.Cluster{UID: "green"}, true, http.StatusConflict},
		"without a cluster":             {vedette.Cluster{}, true, http.StatusOK},
		"before a cluster was reached":  {vedette.Cluster{UID: "blue"}, false, http.StatusServiceUnavailable},
		"no cluster, and none reached ": {vedette.Cluster{}, false, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConnectedAgent(t, respondAsAPIServer)
			if !tt.reached {
				c.accounts.put(newAccount(c.Agent, Account{Name: "prod"}))
			}
			c.submit(getPod("1", tt.cluster))
			if out := <-c.outcomes; out.Status != tt.status {
				t.Errorf("got %+v, want status %d", out, tt.status)
			}
		})
	}
}

// TestOperationThatArrivedBeforeItsCluster checks that an operation without a cluster is not executed in
// the first one that its account reaches after it arrived.
func TestOperationThatArrivedBeforeItsCluster(t *testing.T) {
	c := newConnectedAgent(t, respondAsAPIServer)
	if out := c.execute(t.Context(), getPod("1", vedette.Cluster{}), nil); out.Status != http.StatusServiceUnavailable || !strings.Contains(out.Message, "when the operation arrived") {
		t.Errorf("got %+v", out)
	}
}

// respondAsAPIServer serves one pod.
func respondAsAPIServer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case r.URL.Path == "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","groups":[]}`)
	case r.URL.Path == "/api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`)
	default:
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1"}}
		body, err := json.Marshal(pod)
		if err == nil {
			_, _ = w.Write(body)
		}
	}
}

// TestCoverageOfAnAccountThatIsNotReported checks what the outcome of an operation says of objects while another agent may report them.
func TestCoverageOfAnAccountThatIsNotReported(t *testing.T) {
	c := newConnectedAgent(t, http.NotFound)
	account := c.accounts.get("prod")
	deployments := vedette.Resource{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Version: "v1", Plural: "deployments", Namespaced: true}
	secrets := vedette.Resource{Kind: vedette.Kind{Name: "Secret"}, Version: "v1", Plural: "secrets", Namespaced: true}
	expect := func(when string, r vedette.Resource, want operate.Coverage) {
		t.Helper()
		if got := account.coverage(r, &vedette.Object{Key: vedette.Key{Kind: r.Kind, Namespace: "shop", Name: "web"}}); got != want {
			t.Errorf("%s, %s: got %v, want %v", when, r.Kind, got, want)
		}
	}
	expect("before the account is reported", deployments, operate.ReportedElsewhere)
	expect("before the account is reported", secrets, operate.NotReported)
	account.setWatcher(watch.NewWatcher(account.cluster, watch.Selection{}, nil, watch.Config{}), &feedAnnouncements{}, nil)
	expect("while nothing is discovered", deployments, operate.ReportedElsewhere)
	account.stopWatching()
	expect("when another agent reports the account", deployments, operate.ReportedElsewhere)
	c.Agent.mu.Lock()
	c.Agent.settings.Kinds = []string{"secret"}
	c.Agent.mu.Unlock()
	expect("of the kinds that the server asks for", secrets, operate.ReportedElsewhere)
	expect("of the kinds that the server asks for", deployments, operate.NotReported)
}

// sinkOfBegins takes the beginning of a snapshot that replaces what is stored only when it may.
type sinkOfBegins struct{ begun, finish chan struct{} }

// Put implements watch.Sink.
func (s sinkOfBegins) Put(_ context.Context, e watch.Event) error {
	if e.Type == watch.Begin && e.Anew {
		close(s.begun)
		<-s.finish
	}
	return nil
}

// noDifferences is a server that stores what the cluster has.
type noDifferences struct{}

// Compare implements watch.Comparer.
func (noDifferences) Compare(context.Context, vedette.Feed, verify.Request) (verify.Answer, error) {
	return verify.Answer{}, nil
}

// Report implements watch.Comparer.
func (noDifferences) Report(context.Context, vedette.Feed, watch.VerifyReport) error { return nil }

// TestOutcomeWaitsForTheBeginning checks that the outcome of an operation is held back while its feed begins to be read anew: the server
// would forget what it says, and the list may be older.
func TestOutcomeWaitsForTheBeginning(t *testing.T) {
	var version atomic.Int64
	version.Store(5)
	c := newConnectedAgent(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Has("watch"):
			kubetest.Hang(w, r, "")
		case r.URL.Path == "/api/v1/pods":
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[]}`, version.Load())
		default:
			respondAsAPIServer(w, r)
		}
	})
	account := c.accounts.get("prod")
	sink := sinkOfBegins{make(chan struct{}), make(chan struct{})}
	w := watch.NewWatcher(account.cluster, watch.Selection{Kinds: []string{"pod"}}, sink, watch.Config{Comparer: noDifferences{},
		VerifyInterval: 100 * time.Millisecond, IdleTimeout: time.Minute})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, nil) }()
	t.Cleanup(func() { stop(); <-ended })
	redactor, err := c.redactorFor(c.serverSettings())
	if err != nil {
		t.Fatal(err)
	}
	account.setWatcher(w, &feedAnnouncements{}, redactor)
	c.submit(getPod("1", vedette.Cluster{}))
	if out := <-c.outcomes; out.CacheObject == nil {
		t.Fatalf("got %+v, want the object for the store", out)
	}
	version.Store(3) // the cluster was restored
	<-sink.begun
	c.submit(getPod("2", vedette.Cluster{}))
	select {
	case out := <-c.outcomes:
		close(sink.finish)
		t.Fatalf("got %+v before the server knows that the feed is read anew", out)
	case <-time.After(100 * time.Millisecond):
	}
	late := getPod("3", vedette.Cluster{})
	late.Deadline = time.Now().Add(500 * time.Millisecond)
	c.submit(late)
	out := <-c.outcomes // although operation 2 waits, which needs no worker
	if out.ID != "3" || out.State != vedette.Done || !time.Now().Before(late.Deadline) {
		t.Errorf("got %+v, want the outcome of the operation before its deadline", out)
	}
	close(sink.finish)
	if out := <-c.outcomes; out.ID != "2" || out.State != vedette.Done {
		t.Errorf("got %+v, want that of the operation that waited", out)
	}
}
