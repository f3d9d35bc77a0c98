package peer

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// TestOperationsReachAgentsOfOtherServers executes operations at servers that the agent is not connected to.
func TestOperationsReachAgentsOfOtherServers(t *testing.T) {
	w := newInstallation(t, "s1", "s2", "s3")
	a := w.newAgent("a", "1", "prod")
	a.connect(w.nodes["s2"])
	for _, at := range []vedette.ServerID{"s1", "s2", "s3"} {
		for _, args := range []vedette.Args{get, scale, restart} {
			id := vedette.OperationID(fmt.Sprintf("%s-%s", at, args.Verb()))
			out := w.nodes[at].Execute(t.Context(), vedette.Operation{ID: id, Account: "prod", Args: args})
			expectDone(t, out)
			if out.ID != id || out.Message != "prod" || len(out.Objects) != 1 && at != "s2" {
				t.Errorf("got %+v", out)
			}
			if writer := (store{w, nil}).writer("prod", string(id)); !(vedette.Operation{Args: args}).Reads() && writer != "s2" {
				t.Errorf("%s: %q has written the object through, want s2", id, writer)
			}
			if n := a.effects(id); n != 1 {
				t.Errorf("%s took effect %d times", id, n)
			}
			await(t, "the agent may forget the outcome", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.outcomes) == 0 })
		}
	}
	row := w.row("s1-restart")
	if row.State != vedette.Done || row.Server != "s1" || row.Agent != "a" || row.Sent.IsZero() {
		t.Errorf("got %+v in the history", row)
	}
	if n := w.nodes["s1"].count("done"); n != 3 {
		t.Errorf("counted %d operations, want 3", n)
	}
	if w.lookups > 4 {
		t.Errorf("%d statements for places that are remembered", w.lookups)
	}
}

// TestDeletionOfAKnownObject deletes the object that both servers take for the stored one.
func TestDeletionOfAKnownObject(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	a.execute = func(op vedette.Operation) vedette.Outcome {
		return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200, UIDs: []string{op.Args.(vedette.DeleteArgs).KnownUID},
			Keys: []vedette.Key{{Kind: deployments, Namespace: "shop", Name: "web"}}}
	}
	a.connect(w.nodes["s2"])
	expectDone(t, w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: "del", Account: "prod", Args: vedette.DeleteArgs{Target: web}}))
	if writer := (store{w, nil}).writer("prod", "removed known"); writer != "s2" {
		t.Errorf("%q has removed the object", writer)
	}
}

// TestAgentMoves moves an agent between servers: what others remember is wrong, rows may name servers that do not have it, and
// no operation goes in circles.
func TestAgentMoves(t *testing.T) {
	w := newInstallation(t, "s1", "s2", "s3")
	a := w.newAgent("a", "1", "prod")
	for i, at := range []vedette.ServerID{"s2", "s3", "s1", "s2", "s3"} {
		a.connect(w.nodes[at])
		expectDone(t, w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: vedette.OperationID(fmt.Sprint("op", i)), Account: "prod", Args: restart}))
		a.disconnect()
	}
	w.mu.Lock()
	w.accounts["prod"] = "s2" // a row that is old, while nobody has the agent; s2 has been told that it is at s3, and s3 that it is at s1
	w.mu.Unlock()
	for at, remembered := range map[vedette.ServerID]vedette.ServerID{"s2": "s3", "s3": "s1"} {
		l := w.nodes[at].client.locator
		l.mu.Lock()
		l.remembered["prod"] = remembered
		l.mu.Unlock()
	}
	waiting := w.nodes["s1"].start(vedette.Operation{ID: "waits", Account: "prod", Args: restart})
	await(t, "the server asks where the agent is", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.lookups > 6 })
	a.connect(w.nodes["s3"])
	expectDone(t, <-waiting)
	a.disconnect()
	w.mu.Lock()
	w.accounts["prod"] = "s2"
	w.mu.Unlock()
	out := w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: "nowhere", Account: "prod", Args: restart})
	if out.State != vedette.Failed || !strings.Contains(out.Message, "server s2, to which it was connected, does not have it any more") {
		t.Errorf("got %+v", out)
	}
	w.mu.Lock()
	w.accounts["prod"] = "s1"
	before := w.lookups
	w.mu.Unlock()
	start := time.Now()
	out = w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: "left here", Account: "prod", Args: restart})
	if out.State != vedette.Failed || !strings.Contains(out.Message, "no agent serves account prod") {
		t.Errorf("got %+v", out)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, most := w.lookups-before, int(time.Since(start)/lookupInterval)+2; n > most {
		t.Errorf("%d statements, want at most %d", n, most)
	}
}

// TestAgentComesToThisServer connects the agent to the server that has accepted the operation, while it searches others.
func TestAgentComesToThisServer(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	w.mu.Lock()
	w.accounts["prod"] = "gone"
	w.mu.Unlock()
	waiting := w.nodes["s1"].start(vedette.Operation{ID: "op", Account: "prod", Args: restart})
	await(t, "the server asks where the agent is", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.lookups > 1 })
	w.newAgent("a", "1", "prod").connect(w.nodes["s1"])
	expectDone(t, <-waiting)
	if n := w.nodes["s1"].client.Connections(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

// TestManyAccountsAreLookedUpTogether waits for the agents of many accounts with few statements.
func TestManyAccountsAreLookedUpTogether(t *testing.T) {
	w := newInstallation(t, "s1")
	var running sync.WaitGroup
	start := time.Now()
	for i := range 300 {
		account := vedette.AccountName(fmt.Sprint("account", i))
		w.mu.Lock()
		w.accounts[account] = "dead"
		w.mu.Unlock()
		running.Go(func() { w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: account, Args: get}) })
	}
	running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if most := int(time.Since(start)/lookupInterval) + 2; w.lookups > most {
		t.Errorf("%d statements in %v, want at most %d", w.lookups, time.Since(start), most)
	}
}

// TestParallelOperations executes many operations across two servers at once. Each gets its own outcome.
func TestParallelOperations(t *testing.T) {
	w := newPatientInstallation(t, "s1", "s2")
	const accounts, operations = 20, 1000
	agents := map[vedette.AccountName]*agent{}
	for i := range accounts {
		account := vedette.AccountName(fmt.Sprint("account", i))
		agents[account] = w.newAgent(vedette.AgentID("agent of "+account), "1", account)
		agents[account].connect(w.nodes[[]vedette.ServerID{"s1", "s2"}[i%2]])
	}
	var running sync.WaitGroup
	for i := range operations {
		running.Go(func() {
			account := vedette.AccountName(fmt.Sprint("account", i%accounts))
			id := vedette.OperationID(fmt.Sprint("op", i))
			out := w.nodes[[]vedette.ServerID{"s1", "s2"}[i/2%2]].Execute(t.Context(), vedette.Operation{ID: id, Account: account, Args: scale})
			if out.State != vedette.Done || out.ID != id || out.Message != string(account) || agents[account].effects(id) != 1 {
				t.Errorf("operation %s of %s: got %+v", id, account, out)
			}
		})
	}
	running.Wait()
	for id, n := range w.nodes {
		await(t, "no operation is under way at "+string(id), func() bool { return !n.IsBusy("account0") && !n.IsBusy("account1") })
	}
}

// TestLogsFollowTheirReader streams a log through two servers, at the speed of its reader, and ends it at the agent when the reader leaves.
func TestLogsFollowTheirReader(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	closed := make(chan struct{})
	var written atomic.Int64
	in, out := io.Pipe()
	a.execute = func(op vedette.Operation) vedette.Outcome {
		return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200, Stream: &closeNotifier{in, closed}}
	}
	a.connect(w.nodes["s2"])
	answer := w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: "log", Account: "prod", Args: vedette.LogsArgs{Target: web, Follow: true}})
	expectDone(t, answer)
	if w.nodes["s2"].IsBusy("prod") {
		t.Error("a log makes the account busy")
	}
	first := make([]byte, 5)
	go func() { _, _ = out.Write([]byte("line1")) }()
	if _, err := io.ReadFull(answer.Stream, first); err != nil || string(first) != "line1" {
		t.Fatalf("got %q, %v", first, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			n, err := out.Write(make([]byte, 32<<10))
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	unchanged := 0
	await(t, "the log waits for its reader", func() bool {
		before := written.Load()
		time.Sleep(time.Millisecond)
		if unchanged++; written.Load() != before {
			unchanged = 0
		}
		return unchanged == 100
	})
	if err := answer.Stream.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Fatal("the log is not closed at the agent's server")
	}
	<-ended
	if n := written.Load(); n > 1<<20 {
		t.Errorf("%d bytes were read of a log that nobody reads", n)
	}
	await(t, "the agent is told", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.canceled["log"] })
}

type closeNotifier struct {
	*io.PipeReader
	closed chan struct{}
}

func (c *closeNotifier) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return c.PipeReader.Close()
}

// TestLogEnds passes on the end of a log, and why it is incomplete.
func TestLogEnds(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	link := w.nodes["s1"].linkTo(w.nodes["s2"])
	a := w.newAgent("a", "1", "prod")
	a.connect(w.nodes["s2"])
	for _, tt := range []struct {
		name string
		err  error
		cut  bool
		want string
	}{{"whole", nil, false, ""}, {"broken off", errors.New("the node is gone"), false, "the node is gone"}, {"cut", nil, true, "connection"}} {
		in, out := io.Pipe()
		a.mu.Lock()
		a.execute = func(op vedette.Operation) vedette.Outcome {
			return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200, Stream: in}
		}
		a.mu.Unlock()
		answer := w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: vedette.LogsArgs{Target: web}})
		expectDone(t, answer)
		go func() { _, _ = out.Write([]byte("text")) }()
		text := make([]byte, 4)
		if _, err := io.ReadFull(answer.Stream, text); err != nil || string(text) != "text" {
			t.Fatalf("got %q, %v", text, err)
		}
		if tt.cut {
			link.Cut()
		} else {
			_ = out.CloseWithError(tt.err)
		}
		_, err := io.ReadAll(answer.Stream)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestLargeOperationsAndAnswers passes on documents and lists that are larger than messages may be. A list that is too large fails.
func TestLargeOperationsAndAnswers(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	manifest := bytes.Repeat([]byte("m"), 3<<20)
	list := bytes.Repeat([]byte("1"), 2<<20)
	a.execute = func(op vedette.Operation) vedette.Outcome {
		out := vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200}
		switch args := op.Args.(type) {
		case vedette.ApplyArgs:
			out.Unchanged = bytes.Equal(args.Manifest, manifest)
		case vedette.ListArgs:
			out.Result = list
			if args.LabelSelector == "all" {
				out.Result = bytes.Repeat(list, 3)
			}
		}
		return out
	}
	a.connect(w.nodes["s2"])
	out := w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: vedette.ApplyArgs{Manifest: manifest}})
	if expectDone(t, out); !out.Unchanged {
		t.Error("the agent has got another manifest")
	}
	out = w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: vedette.ListArgs{}})
	if expectDone(t, out); !bytes.Equal(out.Result, list) {
		t.Errorf("got %d bytes", len(out.Result))
	}
	out = w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: vedette.ListArgs{LabelSelector: "all"}})
	if out.State != vedette.Failed || out.Status != 413 || !strings.Contains(out.Message, "request less") {
		t.Errorf("got %+v", out)
	}
	if held := w.nodes["s1"].client.answers.Stats().Used; held != 0 {
		t.Errorf("%d bytes are still reserved", held)
	}
}

// TestListsArePassedOnWhileTheyAreRead sends a list that the relaying server does not hold: whole, broken off by the agent, cut off in
// the middle, and too large.
func TestListsArePassedOnWhileTheyAreRead(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	a.connect(w.nodes["s2"])
	list := bytes.Repeat([]byte("1"), 1<<20)
	encode := func(id vedette.OperationID) []byte {
		b, err := wire.Marshal(wire.FromOutcome(vedette.Outcome{ID: id, State: vedette.Done, Status: 200, Result: list}))
		if err != nil {
			t.Error(err)
		}
		return b
	}
	for _, tt := range []struct {
		name   string
		send   func(out *io.PipeWriter, encoded []byte, attempt int) error
		status int
		reads  int
	}{
		{"whole", func(out *io.PipeWriter, encoded []byte, _ int) error { _, _ = out.Write(encoded); return nil }, 200, 1},
		{"broken off", func(out *io.PipeWriter, encoded []byte, _ int) error {
			_, _ = out.Write(encoded[:1<<19])
			return fmt.Errorf("%w: the API server is gone", wire.ErrIncompleteAnswer)
		}, 502, 1},
		{"cut off once", func(out *io.PipeWriter, encoded []byte, attempt int) error {
			if attempt == 1 {
				_, _ = out.Write(encoded[:1<<19])
				return fmt.Errorf("decompress an answer: %w", io.ErrUnexpectedEOF)
			}
			_, _ = out.Write(encoded)
			return nil
		}, 200, 2},
		{"endless", func(out *io.PipeWriter, encoded []byte, _ int) error {
			for {
				if _, err := out.Write(encoded); err != nil {
					return err
				}
			}
		}, 413, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var attempts atomic.Int64
			a.mu.Lock()
			a.onSend = func(op vedette.Operation) {
				attempt := int(attempts.Add(1))
				in, out := io.Pipe()
				if !a.attached.PassesOn(op.ID) || !a.attached.HandleEncoded(op.ID, in) {
					t.Error("the outcome is not passed on")
					return
				}
				_ = out.CloseWithError(tt.send(out, encode(op.ID), attempt))
			}
			a.mu.Unlock()
			out := w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: vedette.ListArgs{}})
			if out.Status != tt.status || tt.status == 200 && !bytes.Equal(out.Result, list) {
				t.Errorf("got %s %d %s with %d bytes, want %d", out.State, out.Status, out.Message, len(out.Result), tt.status)
			}
			if n := attempts.Load(); n != int64(tt.reads) {
				t.Errorf("it was read %d times, want %d", n, tt.reads)
			}
			await(t, "no memory is reserved", func() bool { return w.nodes["s1"].client.answers.Stats().Used == 0 })
		})
	}
	a.mu.Lock()
	a.onSend = func(op vedette.Operation) {
		if a.attached.PassesOn(op.ID) {
			t.Errorf("the outcome of %s is passed on, and not written through", op.Args.Verb())
		}
		a.answer(vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200})
	}
	a.mu.Unlock()
	for _, args := range []vedette.Args{scale, vedette.RecacheArgs{Target: web}} {
		expectDone(t, w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: args}))
	}
}

// TestInvalidTextOfAClusterArrives passes on an outcome with bytes that are not UTF-8.
func TestInvalidTextOfAClusterArrives(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	a.execute = func(op vedette.Operation) vedette.Outcome {
		return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: 500, Message: "caf\xe9\x00!"}
	}
	a.connect(w.nodes["s2"])
	out := w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: scale})
	if out.State != vedette.Failed || out.Status != 500 || !strings.HasPrefix(out.Message, "caf") || strings.Contains(out.Message, "\x00") {
		t.Errorf("got %+v", out)
	}
}

// TestCallersWaitForOtherServers waits for an operation that another server has accepted.
func TestCallersWaitForOtherServers(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	release := make(chan struct{})
	a := w.newAgent("a", "1", "prod")
	execute := a.execute
	a.execute = func(op vedette.Operation) vedette.Outcome { <-release; return execute(op) }
	a.connect(w.nodes["s1"])
	first := w.nodes["s1"].start(vedette.Operation{ID: "op", Account: "prod", Args: restart})
	await(t, "the operation is sent", func() bool { return a.effects("op") == 1 })
	ended := make(chan error, 1)
	go func() { ended <- w.nodes["s2"].AwaitEnd(t.Context(), "s1", "op") }()
	await(t, "the server is asked", func() bool { n := w.nodes["s1"]; n.mu.Lock(); defer n.mu.Unlock(); return n.asked == 1 })
	select {
	case err := <-ended:
		t.Fatalf("it ended early: %v", err)
	default:
	}
	close(release)
	expectDone(t, <-first)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if w.row("op").State != vedette.Done {
		t.Errorf("the end is not recorded: %s", w.row("op").State)
	}
	for _, server := range []vedette.ServerID{"s1", "dead", "s2"} {
		if err := w.nodes["s2"].AwaitEnd(t.Context(), server, "op"); err == nil {
			t.Errorf("%s: got %v", server, err)
		}
	}
}

// TestOnlyServersThatRunAreHeard connects with keys that no row has, and without any.
func TestOnlyServersThatRunAreHeard(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	w.newAgent("a", "1", "prod").connect(w.nodes["s2"])
	expectDone(t, w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: get}))
	address := w.members["s2"].Address
	stranger, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	accept := func([32]byte) error { return nil }
	older := stranger.config(accept)
	older.MinVersion = tls.VersionTLS12
	older.MaxVersion = tls.VersionTLS12
	anonymous := stranger.config(accept)
	anonymous.Certificates = nil
	noALPN := w.nodes["s1"].client.cfg.Identity.config(accept)
	noALPN.NextProtos = nil
	for name, cfg := range map[string]*tls.Config{"a stranger": stranger.config(accept), "without a certificate": anonymous, "TLS 1.2": older, "another protocol": noALPN} {
		conn, err := tls.Dial("tcp", address, cfg)
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	// A server that answers with another key than that of the row is not asked.
	w.mu.Lock()
	p := w.members["s2"]
	p.Key[0]++
	w.members["s2"] = p
	w.mu.Unlock()
	out := w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: get})
	if out.State != vedette.Failed || !strings.Contains(out.Message, "cannot be reached") {
		t.Errorf("got %+v", out)
	}
}

// TestEvictedServerCanDoNothing removes the row of a server while its operation is under way, and while it sends others.
func TestEvictedServerCanDoNothing(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	release := make(chan struct{})
	a.execute = func(op vedette.Operation) vedette.Outcome {
		<-release
		return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200}
	}
	defer close(release)
	a.connect(w.nodes["s2"])
	running := w.nodes["s1"].start(vedette.Operation{ID: "op", Account: "prod", Args: restart, Deadline: time.Now().Add(2 * time.Second)})
	await(t, "the operation is sent", func() bool { return a.effects("op") == 1 })
	w.evict("s1")
	await(t, "its connections are closed", func() bool { return w.nodes["s2"].server.Connections() == 0 })
	if out := w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: "later", Account: "prod", Args: restart}); out.State != vedette.Failed {
		t.Errorf("got %+v", out)
	}
	if out := <-running; out.State != vedette.Lost {
		t.Errorf("got %+v", out)
	}
	if a.effects("later") != 0 {
		t.Error("the operation of an evicted server took effect")
	}
}

// TestRowsAreNotTakenOver gives the key of a server to another process in the table.
func TestRowsAreNotTakenOver(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	w.newAgent("a", "1", "prod").connect(w.nodes["s2"])
	expectDone(t, w.nodes["s1"].Execute(t.Context(), vedette.Operation{Account: "prod", Args: get}))
	w.mu.Lock()
	p := w.members["s1"]
	p.Process = "another"
	w.members["s1"] = p
	w.mu.Unlock()
	await(t, "the connection is closed", func() bool { return w.nodes["s2"].server.Connections() == 0 })
}
