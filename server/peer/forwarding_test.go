package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/wire"
)

// restNode is a server with its REST API.
type restNode struct {
	*node
	forwarding *Forwarding
	url        string
	isAway     atomic.Bool // its REST API cannot be reached by other servers
}

// withREST gives servers their REST APIs.
func (w *installation) withREST(ids ...vedette.ServerID) map[vedette.ServerID]*restNode {
	w.t.Helper()
	all := map[vedette.ServerID]*restNode{}
	var mu sync.Mutex
	for _, id := range ids {
		n := &restNode{node: w.nodes[id]}
		n.forwarding = NewForwarding(ForwardingConfig{Config: n.client.cfg, Dispatch: n.Dispatcher, Rows: store{w, n.node}, Log: n.client.log,
			URL: func(id vedette.ServerID) (string, bool) {
				mu.Lock()
				defer mu.Unlock()
				to, ok := all[id]
				switch {
				case !ok:
					return "", false
				case to.isAway.Load():
					return "http://127.0.0.1:1", true
				}
				return to.url, true
			}})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- n.forwarding.Run(ctx) }()
		w.t.Cleanup(func() { cancel(); <-ended })
		api := httptest.NewServer(serveForwarding(n.forwarding))
		w.t.Cleanup(api.Close)
		n.url = api.URL
		mu.Lock()
		all[id] = n
		mu.Unlock()
	}
	return all
}

// serveForwarding answers as package clouddriver does, which would make the fuzz tests of this package large.
func serveForwarding(f *Forwarding) http.Handler {
	answer := func(take func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			err := take(w, r)
			status := map[vedette.ErrorKind]int{vedette.Invalid: 400, vedette.Denied: 403, vedette.NotFound: 404, vedette.Conflict: 409, vedette.Unavailable: 503}[vedette.KindOf(err)]
			var unproven *UnprovenError
			var tooLarge *http.MaxBytesError
			switch {
			case err == nil:
				return
			case errors.As(err, &unproven):
				status = http.StatusUnauthorized
				w.Header().Set("WWW-Authenticate", unproven.Challenge())
			case errors.As(err, &tooLarge):
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(w, err.Error(), max(status, 400))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+operationPath, answer(f.Operation))
	mux.HandleFunc("POST "+resultPath, answer(f.Result))
	return mux
}

// textOf returns the body of a request for an operation.
func textOf(t testing.TB, op vedette.Operation) string {
	t.Helper()
	encoded, err := wire.FromOperation(op, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := formatText(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return bodyWith(t, "operation", text)
}

func bodyWith(t testing.TB, member, text string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{member: text})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func resultOf(t testing.TB, out vedette.Outcome) string {
	t.Helper()
	body, err := formatResult(out, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// request sends a request without help of the client, and returns the answer.
func (n *restNode) request(t testing.TB, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return response, text.String()
}

// challenge asks for a challenge.
func (n *restNode) challenge(t testing.TB, path string) string {
	t.Helper()
	response, body := n.request(t, path, "")
	challenge := challengeOf(response.Header.Get("WWW-Authenticate"))
	if response.StatusCode != http.StatusUnauthorized || challenge == "" {
		t.Fatalf("got %s %v %s, want a challenge", response.Status, response.Header, body)
	}
	return challenge
}

// proveTo returns the proof of a request from one server to another.
func (n *restNode) proveTo(t testing.TB, to *restNode, path, body string, change func(*proof)) string {
	t.Helper()
	p := proof{From: n.id, To: to.id, Challenge: to.challenge(t, path), Digest: digestOf([]byte(body))}
	if change != nil {
		change(&p)
	}
	authorization, err := n.forwarding.cfg.Identity.prove(http.MethodPost, path, p)
	if err != nil {
		t.Fatal(err)
	}
	return authorization
}

// send sends a proven request.
func (n *restNode) send(t testing.TB, to *restNode, path, body string) (int, string) {
	t.Helper()
	response, text := to.request(t, path, body, "Authorization", n.proveTo(t, to, path, body, nil))
	return response.StatusCode, text
}

// operationFor returns an operation as a server accepts it.
func operationFor(id vedette.OperationID, account vedette.AccountName, args vedette.Args) vedette.Operation {
	return vedette.Operation{ID: id, Account: account, Args: args, Deadline: time.Now().Add(20 * time.Second), Cluster: clusterOf(account)}
}

// TestOperationOverREST passes an operation on over REST while the port for servers cannot be reached: it takes effect once, and the server
// that has accepted it gets its outcome over REST.
func TestOperationOverREST(t *testing.T) {
	w := newPatientInstallation(t, "a", "b")
	rest := w.withREST("a", "b")
	a, b := rest["a"], rest["b"]
	a.linkTo(b.node).Refuse()
	agent := w.newAgent("agent", "1", "prod")
	agent.connect(b.node)
	op := operationFor("01J00000000000000000000001", "prod", restart)
	done := a.start(op)
	await(t, "the operation is recorded", func() bool { return w.row(op.ID).State == history.Pending })
	if status, text := a.send(t, b, operationPath, textOf(t, op)); status != http.StatusOK {
		t.Fatalf("got %d %s", status, text)
	}
	expectDone(t, <-done)
	if n := agent.effects(op.ID); n != 1 {
		t.Errorf("got %d effects, want 1", n)
	}
	if by := (store{w, b.node}).writer("prod", string(op.ID)); by != "b" {
		t.Errorf("%q has written the object through, want the server of the agent", by)
	}
	if forgotten := <-agent.forgotten; forgotten != op.ID {
		t.Errorf("the agent has forgotten %s", forgotten)
	}
	if row := w.row(op.ID); row.State != vedette.Done || row.Server != "a" {
		t.Errorf("got the row %+v", row)
	}
}

// TestResultIsLost passes an operation on to a server whose result the other one cannot get. The agent keeps its outcome, and answers when it
// is asked over the port for servers: one outcome, one effect.
func TestResultIsLost(t *testing.T) {
	w := newPatientInstallation(t, "a", "b")
	rest := w.withREST("a", "b")
	a, b := rest["a"], rest["b"]
	link := a.linkTo(b.node)
	link.Refuse()
	agent := w.newAgent("agent", "1", "prod")
	agent.connect(b.node)
	op := operationFor("01J00000000000000000000002", "prod", restart)
	done := a.start(op)
	await(t, "the operation is recorded", func() bool { return w.row(op.ID).State == history.Pending })
	body := textOf(t, op)
	authorization := a.proveTo(t, b, operationPath, body, nil)
	a.isAway.Store(true)
	if response, text := b.request(t, operationPath, body, "Authorization", authorization); response.StatusCode != http.StatusOK {
		t.Fatalf("got %s %s", response.Status, text)
	}
	await(t, "the operation has taken effect", func() bool { return agent.effects(op.ID) == 1 })
	link.Heal()
	expectDone(t, <-done)
	if n := agent.effects(op.ID); n != 1 {
		t.Errorf("got %d effects, want 1", n)
	}
}

// TestOnlyServersAreBelieved checks who may send operations: whatever else somebody has, it is not enough. Nothing happens then.
func TestOnlyServersAreBelieved(t *testing.T) {
	w := newInstallation(t, "a", "b", "c")
	rest := w.withREST("a", "b", "c")
	a, b, c := rest["a"], rest["b"], rest["c"]
	agent := w.newAgent("agent", "1", "prod")
	agent.connect(b.node)
	op := operationFor("01J00000000000000000000003", "prod", get)
	body := textOf(t, op)
	stranger, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	forged := func(change func(*proof)) string {
		p := proof{From: "a", To: "b", Challenge: b.challenge(t, operationPath), Digest: digestOf([]byte(body))}
		if change != nil {
			change(&p)
		}
		authorization, err := stranger.prove(http.MethodPost, operationPath, p)
		if err != nil {
			t.Fatal(err)
		}
		return authorization
	}
	good := a.proveTo(t, b, operationPath, body, nil)
	signature := good[strings.Index(good, "."):]
	for name, authorization := range map[string]string{
		"nothing":                  "",
		"a user":                   "Basic dXNlcjpwYXNzd29yZA==",
		"a token":                  "Bearer 0123456789abcdef",
		"half a proof":             strings.TrimSuffix(good, signature),
		"no signature":             strings.TrimSuffix(good, signature) + ".",
		"another signature":        strings.TrimSuffix(forged(nil), "") + "A",
		"a stranger's key":         forged(nil),
		"a stranger without name":  forged(func(p *proof) { p.From = "" }),
		"a server that never was":  forged(func(p *proof) { p.From = "x" }),
		"another server's name":    c.proveTo(t, b, operationPath, body, func(p *proof) { p.From = "a" }),
		"for another server":       a.proveTo(t, b, operationPath, body, func(p *proof) { p.To = "c" }),
		"another server's":         a.proveTo(t, b, operationPath, body, func(p *proof) { p.Challenge = c.challenge(t, operationPath) }),
		"for another path":         a.proveTo(t, b, resultPath, body, nil),
		"a server to itself":       b.proveTo(t, b, operationPath, body, nil),
		"a made-up challenge":      a.proveTo(t, b, operationPath, body, func(p *proof) { p.Challenge = strings.Repeat("A", len(p.Challenge)) }),
		"an endless proof":         proofScheme + " " + strings.Repeat("A", maxProofBytes+1),
		"a proof that is not JSON": proofScheme + " " + strictBase64.EncodeToString([]byte(`{"from":"a"`)) + ".AA",
		"twice the same member":    proofScheme + " " + strictBase64.EncodeToString([]byte(`{"from":"a","from":"b"}`)) + ".AA",
	} {
		response, text := b.request(t, operationPath, body, "Authorization", authorization, "X-Spinnaker-User", "admin", "X-Spinnaker-Accounts", "prod")
		if response.StatusCode != http.StatusUnauthorized || challengeOf(response.Header.Get("WWW-Authenticate")) == "" ||
			!strings.Contains(text, "only servers that share the database") {
			t.Errorf("%s: got %s %s", name, response.Status, text)
		}
	}
	if response, text := b.request(t, operationPath, body+" ", "Authorization", good); response.StatusCode != http.StatusForbidden {
		t.Errorf("another body: got %s %s", response.Status, text)
	}
	if n := agent.effects(op.ID); n != 0 {
		t.Fatalf("got %d effects", n)
	}

	// What was proven once proves nothing again: not there, not elsewhere, not after a restart, and not after the server has ended.
	good = a.proveTo(t, b, operationPath, body, nil)
	if response, text := b.request(t, operationPath, body, "Authorization", good); response.StatusCode != http.StatusOK {
		t.Fatalf("got %s %s", response.Status, text)
	}
	for name, at := range map[string]*restNode{"again": b, "at another server": c} {
		if response, text := at.request(t, operationPath, body, "Authorization", good); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got %s %s", name, response.Status, text)
		}
	}
	good = a.proveTo(t, b, operationPath, body, nil)
	b.forwarding.challenges = newChallenges() // as a process that has just started
	if response, text := b.request(t, operationPath, body, "Authorization", good); response.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(text, "before a restart") {
		t.Errorf("after a restart: got %s %s", response.Status, text)
	}
	good = a.proveTo(t, b, operationPath, body, nil)
	w.evict("a")
	if response, text := b.request(t, operationPath, body, "Authorization", good); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("after its eviction: got %s %s", response.Status, text)
	}
	if n := agent.effects(op.ID); n != 1 {
		t.Errorf("got %d effects, want the one that was proven", n)
	}
}

// TestChallengesEnd checks that a challenge ends by this process' clock, and that those that are used take bounded memory.
func TestChallengesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChallenges()
		late, early := c.issue(), c.issue()
		given, challenge, err := c.given(early)
		if err != nil || !given.Equal(time.Now()) {
			t.Fatalf("got %v, %v", given, err)
		}
		if err := c.use(challenge, given); err != nil {
			t.Fatal(err)
		}
		time.Sleep(challengeAge)
		if _, _, err := c.given(late); err != nil {
			t.Error(err)
		}
		if err := c.use(challenge, given); err == nil {
			t.Error("a challenge was used twice at its end")
		}
		time.Sleep(time.Nanosecond)
		if _, _, err := c.given(late); err == nil || !strings.Contains(err.Error(), "is good for 10s") {
			t.Errorf("got %v after its time", err)
		}
		if _, _, err := c.given(early + "="); err == nil {
			t.Error("a challenge has two spellings")
		}
		for range maxUsed { // the used one is forgotten on the way
			given, challenge, err := c.given(c.issue())
			if err == nil {
				err = c.use(challenge, given)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		given, challenge, err = c.given(c.issue())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.use(challenge, given); vedette.KindOf(err) != vedette.Unavailable || len(c.used) != maxUsed {
			t.Errorf("got %v with %d challenges", err, len(c.used))
		}
		time.Sleep(2 * challengeAge)
		given, challenge, err = c.given(c.issue())
		if err != nil || c.use(challenge, given) != nil || len(c.used) != 1 {
			t.Errorf("got %v, and %d challenges", err, len(c.used))
		}
	})
}

// TestBadOperationsOverREST checks what a server rejects although its sender is known.
func TestBadOperationsOverREST(t *testing.T) {
	w := newInstallation(t, "a", "b", "c")
	rest := w.withREST("a", "b", "c")
	a, b, c := rest["a"], rest["b"], rest["c"]
	agent := w.newAgent("agent", "1", "prod")
	agent.connect(b.node)
	accept := func(by *restNode, op vedette.Operation) vedette.Operation {
		if err := (store{w, by.node}).BeginOperation(t.Context(), history.Operation{ID: op.ID, Account: op.Account, Server: by.id, Verb: op.Args.Verb(), DryRun: op.DryRun}); err != nil {
			t.Fatal(err)
		}
		return op
	}
	operation := func(n int, change func(*vedette.Operation)) vedette.Operation {
		op := operationFor(vedette.OperationID(fmt.Sprintf("01J%023d", n)), "prod", restart)
		if change != nil {
			change(&op)
		}
		return op
	}
	ended := accept(a, operation(10, nil))
	if err := (store{w, a.node}).EndOperations(t.Context(), []history.Operation{{ID: ended.ID, Account: "prod", Server: "a", Verb: restart.Verb(), State: vedette.Done}}); err != nil {
		t.Fatal(err)
	}
	dryRun := accept(a, operation(11, func(op *vedette.Operation) { op.DryRun, op.Args = true, vedette.ApplyArgs{Manifest: []byte(`{}`)} }))
	dryRun.DryRun = false
	nested := `id: "x" account: "prod" dry_run { operation ` + strings.Repeat(`{ dry_run { operation `, 5000)
	for _, tt := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"no JSON", "id: 1", 400, "read the body"},
		{"two members of one name", `{"operation":"","operation":""}`, 400, "twice"},
		{"another case", `{"Operation":"id: 1"}`, 400, "no id"},
		{"empty", "{}", 400, "no id or no account"},
		{"not UTF-8", "{\"operation\":\"\xff\"}", 400, "UTF-8"},
		{"half a character", `{"operation":"id: \"\ud800\""}`, 400, "UTF-8"},
		{"no UTF-8 in a string of the text", bodyWith(t, "operation", `id: "\xff"`), 400, "invalid UTF-8"},
		{"the predecessor's fields", bodyWith(t, "operation", `operationId: "01FRKFMF52JBWB3ZW1K3676P8H" type: 6`), 400, "unknown field"},
		{"an unknown field", bodyWith(t, "operation", `id: "x" account: "prod" more: 1`), 400, "unknown field: more"},
		{"a field by its number", bodyWith(t, "operation", `1: "x"`), 400, "vedette.wire.v1.Operation"},
		{"an extension", bodyWith(t, "operation", `[example.com.more]: 1`), 400, "vedette.wire.v1.Operation"},
		{"a type by its URL", bodyWith(t, "operation", `[type.googleapis.com/vedette.wire.v1.Operation] { id: "x" }`), 400, "vedette.wire.v1.Operation"},
		{"deep nesting", bodyWith(t, "operation", nested), 400, "names, numbers and braces"},
		{"nesting", bodyWith(t, "operation", `dry_run{operation{dry_run{operation{dry_run{operation{dry_run{operation{dry_run{operation{dry_run{operation{dry_run{operation{dry_run{operation{dry_run{}}}}}}}}}}}}}}}}}`), 400,
			"recursion"},
		{"many braces", bodyWith(t, "operation", strings.Repeat("list{}", 4000)), 400, "names, numbers and braces"},
		{"50 MB", bodyWith(t, "operation", `id: "`+strings.Repeat("x", 50<<20)+`"`), 413, "too large"},
		{"a field twice", bodyWith(t, "operation", `id: "x" id: "y"`), 400, "non-repeated"},
		{"two verbs", bodyWith(t, "operation", `id: "x" account: "prod" timeout_millis: 1 get {} restart {}`), 400, "vedette.wire.v1.Operation"},
		{"no verb", bodyWith(t, "operation", `id: "x" account: "prod" timeout_millis: 1`), 400, "no verb"},
		{"a verb within a dry run that is empty", bodyWith(t, "operation", `id: "x" account: "prod" timeout_millis: 1 dry_run {}`), 400, "too old"},
		{"no timeout", bodyWith(t, "operation", `id: "x" account: "prod" get {}`), 400, "no timeout"},
		{"a timeout of ages", bodyWith(t, "operation", `id: "x" account: "prod" timeout_millis: 9223372036854775807 get {}`), 400, "more than a year"},
		{"a log", textOf(t, operation(1, func(op *vedette.Operation) { op.Args = vedette.LogsArgs{Target: web} })), 400, "reads a log"},
		{"an operation that nobody has accepted", textOf(t, operation(2, nil)), 409, "not one that server"},
		{"an operation of another server", textOf(t, accept(c, operation(3, nil))), 409, "not one that server"},
		{"an operation that has ended", textOf(t, ended), 409, "not one that server"},
		{"another verb", textOf(t, operation(int(4), func(op *vedette.Operation) { accept(a, *op); op.Args = scale })), 409, "not one that server"},
		{"another account", textOf(t, operation(5, func(op *vedette.Operation) { accept(a, *op); op.Account = "other" })), 409, "not one that server"},
		{"a dry run that is none", textOf(t, dryRun), 409, "not one that server"},
		{"another cluster", textOf(t, accept(a, operation(6, func(op *vedette.Operation) { op.Cluster.UID = "other" }))), 409, "another one than account"},
		{"no cluster", textOf(t, accept(a, operation(7, func(op *vedette.Operation) { op.Cluster = vedette.Cluster{} }))), 409, "names no cluster"},
		{"an account that is not here", textOf(t, operation(8, func(op *vedette.Operation) {
			op.Account, op.Args, op.Cluster = "elsewhere", get, clusterOf("elsewhere")
		})), 404, "no agent that is connected"},
	} {
		if status, text := a.send(t, b, operationPath, tt.body); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: got %d %.500s, want %d %s", tt.name, status, text, tt.status, tt.want)
		}
	}
	agent.mu.Lock()
	defer agent.mu.Unlock()
	if len(agent.received) > 0 {
		t.Errorf("the agent has received %+v", agent.received)
	}
}

// TestTimeOverRESTCountsFromTheChallenge delays a request for longer than its operation may take, but not for longer than its challenge is
// good.
func TestTimeOverRESTCountsFromTheChallenge(t *testing.T) {
	w := newInstallation(t, "a", "b")
	rest := w.withREST("a", "b")
	a, b := rest["a"], rest["b"]
	agent := w.newAgent("agent", "1", "prod")
	agent.connect(b.node)
	op := operationFor("01J00000000000000000000006", "prod", get)
	op.Deadline = time.Now().Add(3 * time.Second)
	body := textOf(t, op)
	authorization := a.proveTo(t, b, operationPath, body, nil)
	b.forwarding.challenges.start = b.forwarding.challenges.start.Add(-5 * time.Second) // as if it had been given earlier
	if response, text := b.request(t, operationPath, body, "Authorization", authorization); response.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(text, "the deadline of the operation had passed when it arrived") {
		t.Errorf("got %s %s", response.Status, text)
	}
	if n := agent.effects(op.ID); n != 0 {
		t.Errorf("got %d effects", n)
	}
}

// TestResultsOverREST checks which results a server takes.
func TestResultsOverREST(t *testing.T) {
	w := newPatientInstallation(t, "a", "b", "c")
	rest := w.withREST("a", "b", "c")
	a, b, c := rest["a"], rest["b"], rest["c"]
	agent := w.newAgent("agent", "1", "prod")
	agent.connect(b.node)
	agent.onSend = func(vedette.Operation) {} // never answers
	op := operationFor("01J00000000000000000000004", "prod", restart)
	done := a.start(op)
	await(t, "the agent has the operation", func() bool { agent.mu.Lock(); defer agent.mu.Unlock(); return len(agent.received) == 1 })
	out := vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200, Message: "from b"}
	for _, tt := range []struct {
		name   string
		from   *restNode
		body   string
		status int
		want   string
	}{
		{"an operation that nobody waits for", b, resultOf(t, vedette.Outcome{ID: "01J00000000000000000000005", State: vedette.Done, Status: 200}), 404, "waits for no result"},
		{"a server without the agent", c, resultOf(t, out), 409, "not connected to server"},
		{"no state", b, bodyWith(t, "result", `id: "01J00000000000000000000004" status: 200`), 400, "no state"},
		{"no status", b, bodyWith(t, "result", `id: "01J00000000000000000000004" state: STATE_DONE`), 400, "no status of HTTP"},
		{"a status of its own", b, bodyWith(t, "result", `id: "01J00000000000000000000004" state: STATE_DONE status: 1000`), 400, "no status of HTTP"},
		{"an unknown state", b, bodyWith(t, "result", `id: "01J00000000000000000000004" state: STATE_OTHER status: 200`), 400, "vedette.wire.v1.Outcome"},
		{"an unknown field", b, bodyWith(t, "result", `operationId: "x"`), 400, "unknown field"},
		{"an operation", b, textOf(t, op), 400, "no id"},
		{"the result", b, resultOf(t, out), 200, ""},
		{"the result again", b, resultOf(t, out), 404, "waits for no result"},
	} {
		if status, text := tt.from.send(t, a, resultPath, tt.body); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: got %d %s, want %d %s", tt.name, status, text, tt.status, tt.want)
		}
	}
	if got := <-done; got.State != vedette.Done || got.Message != "from b" {
		t.Errorf("got %+v", got)
	}
	if status, text := a.send(t, b, resultPath, resultOf(t, out)); status != http.StatusNotFound { // b only relays it
		t.Errorf("the relaying server: got %d %s", status, text)
	}
}

// TestLargeResults checks that half of an answer never passes for all of it.
func TestLargeResults(t *testing.T) {
	large := []json.RawMessage{json.RawMessage(`"` + strings.Repeat("x", maxResultBytes) + `"`)}
	escaped := []json.RawMessage{json.RawMessage(`"` + strings.Repeat("ä", maxResultBytes/2-10) + `"`)} // fits, but not as text
	for _, objects := range [][]json.RawMessage{large, append(escaped, escaped...)} {
		for _, reads := range []bool{true, false} {
			body, err := formatResult(vedette.Outcome{ID: "x", State: vedette.Done, Status: 200, Objects: objects}, reads)
			if err != nil || len(body) > maxTextBody {
				t.Fatalf("got %d bytes, %v", len(body), err)
			}
			out, err := parseResult(body)
			wantState := map[bool]vedette.OutcomeState{true: vedette.Failed, false: vedette.Done}[reads]
			if err != nil || out.ID != "x" || out.State != wantState || len(out.Objects) > 0 || reads != (out.Status == 413) {
				t.Errorf("reads %t: got %+v, %v", reads, out, err)
			}
		}
	}
}

// FuzzOperationText parses any text. What is accepted means the same after it was written again.
func FuzzOperationText(f *testing.F) {
	op := operationFor("01J00000000000000000000001", "prod", scale)
	f.Add(textOf(f, op))
	for _, text := range []string{`{"operation":"id: \"x\" account: 'y' timeout_millis: 1 get <> # more"}`, `{"operation":"dry_run{operation{}}"}`, `{"operation":"\"\\"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, body string) {
		parsed, err := parseOperation([]byte(body))
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("got %v", err)
			}
			return
		}
		text, err := formatText(parsed)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		again, err := parseOperation([]byte(bodyWith(t, "operation", text)))
		if err != nil || fmt.Sprint(wire.ToOperation(again, time.Unix(0, 0))) != fmt.Sprint(wire.ToOperation(parsed, time.Unix(0, 0))) {
			t.Errorf("%q becomes %q, %v", body, text, err)
		}
	})
}

// FuzzResultText does the same with results.
func FuzzResultText(f *testing.F) {
	f.Add(resultOf(f, vedette.Outcome{ID: "x", State: vedette.Done, Status: 200, Objects: []json.RawMessage{json.RawMessage(`{"a":"ä"}`)}}))
	f.Add(`{"result":"id: 'x' state: STATE_LOST status: 504 keys {kind {name: 'a'}} keys {} fresh {} fresh_kind {}"}`)
	f.Fuzz(func(t *testing.T, body string) {
		out, err := parseResult([]byte(body))
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("got %v", err)
			}
			return
		}
		if _, err := formatResult(out, false); err != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: %v", body, err)
		}
	})
}
