package peer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	tasksstore "github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// taskRows are the tasks of a database that two servers share.
type taskRows struct {
	*tasksstore.Tasks // nil: what a test does not use

	mu   sync.Mutex
	rows map[string]tasksstore.Task
}

func (r *taskRows) CreateTask(ctx context.Context, row tasksstore.Task) (tasksstore.Task, bool, error) {
	return row, true, r.SaveTask(ctx, row)
}

func (r *taskRows) SaveTask(_ context.Context, row tasksstore.Task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[row.ID] = row
	return nil
}

func (r *taskRows) Task(_ context.Context, id string) (tasksstore.Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows[id], nil
}

func (r *taskRows) AcquireTask(_ context.Context, id string, _, to vedette.ServerID) (tasksstore.Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.rows[id]
	row.Server = to
	r.rows[id] = row
	return row, nil
}

func (r *taskRows) TaskOwners(context.Context) (map[string]vedette.ServerID, error) { return nil, nil }

func (r *taskRows) PurgeTasks(context.Context, time.Time, int) (int, error) { return 0, nil }

type anyAccount struct{}

func (anyAccount) Account(_ context.Context, name vedette.AccountName) (registry.Account, error) {
	return registry.Account{Account: vedette.Account{Name: name}}, nil
}

func (anyAccount) Feeds(context.Context, ...vedette.AccountName) ([]read.FeedStatus, error) {
	return []read.FeedStatus{{Resource: vedette.Resource{Kind: vedette.Kind{Name: "Service"}, Namespaced: true}}}, nil
}

// slowCluster holds operations until it is released.
type slowCluster struct {
	reached chan vedette.Operation
	release chan struct{}
}

func (c slowCluster) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	c.reached <- op
	select {
	case <-c.release:
	case <-ctx.Done():
		return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout}
	}
	return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: http.StatusOK}
}

// taskPair is two servers that share a database, of which the second one calls the first.
type taskPair struct {
	first, second *task.Tasks
	client        *Client
	cluster       slowCluster
	rows          *taskRows
}

func newTaskPair(t *testing.T) *taskPair {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	members, identities := fixedMembers{}, map[vedette.ServerID]*Identity{}
	for _, id := range []vedette.ServerID{"s1", "s2"} {
		if identities[id], err = NewIdentity(); err != nil {
			t.Fatal(err)
		}
		members[id] = Peer{ID: id, Process: "of-" + string(id), Address: listener.Addr().String(), Key: identities[id].Key()}
	}
	cfg := testConfig
	cfg.Members, cfg.Self, cfg.Identity = members, "s1", identities["s1"]
	srv := NewServer(cfg, nil, slog.New(slog.DiscardHandler))
	cfg.Self, cfg.Identity = "s2", identities["s2"]
	p := &taskPair{client: NewClient(cfg, nil, slog.New(slog.DiscardHandler)), rows: &taskRows{rows: map[string]tasksstore.Task{}},
		cluster: slowCluster{make(chan vedette.Operation, 100), make(chan struct{})}}
	tasks := func(id vedette.ServerID, candidates ...vedette.ServerID) *task.Tasks {
		return task.New(task.Config{Server: id, Store: p.rows, Accounts: anyAccount{}, Dispatch: p.cluster, Sharing: &task.Sharing{
			Process: "of-" + string(id), Peers: p.client, Candidates: func() []vedette.ServerID { return slices.Clone(candidates) },
			Changed: func() <-chan struct{} { return nil },
			IsAlive: func(context.Context, vedette.ServerID, string) bool { return true }, Resume: p.cluster.Execute}})
	}
	p.first, p.second = tasks("s1"), tasks("s2", "s1")
	srv.SetTasks(p.first)
	var group errgroup.Group
	group.Go(func() error { return srv.Serve(t.Context(), listener) })
	group.Go(func() error { return p.client.Run(t.Context()) })
	t.Cleanup(func() {
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *taskPair) submit(t *testing.T, to *task.Tasks, text string) string {
	t.Helper()
	description, err := json.Marshal(map[string]any{"account": "prod", "manifests": []any{map[string]any{"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "annotations": map[string]string{"text": text}}}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := to.Submit(t.Context(), []task.Request{{Name: "deployManifest", Description: description}}, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestTaskIsCopied copies a task that is larger than a message, and drops the copy when the task has ended.
func TestTaskIsCopied(t *testing.T) {
	p := newTaskPair(t)
	id := p.submit(t, p.second, strings.Repeat("x", 5<<18)) // 1.25 MiB
	<-p.cluster.reached
	awaitTasks(t, func() bool { // a busy machine may take longer than the task waits for
		row, err := p.rows.Task(t.Context(), id)
		return err == nil && p.first.Copies() == 1 && strings.Contains(string(row.Body), `"standby":{"server":"s1"`)
	})
	close(p.cluster.release)
	awaitTasks(t, func() bool { return p.second.Running() == 0 && p.first.Copies() == 0 })
}

// TestTaskIsHandedOver stops a server in the middle of a task.
func TestTaskIsHandedOver(t *testing.T) {
	p := newTaskPair(t)
	id := p.submit(t, p.second, "x")
	op := <-p.cluster.reached
	awaitTasks(t, func() bool { return p.first.Copies() == 1 })
	ctx, stop := context.WithCancel(t.Context())
	stop()
	done := make(chan error, 1)
	go func() { done <- p.second.Run(ctx) }() // it waits for 8 s
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if again := <-p.cluster.reached; again.ID != op.ID {
		t.Errorf("got operation %s, want %s again", again.ID, op.ID)
	}
	close(p.cluster.release)
	awaitTasks(t, func() bool { return p.first.Running() == 0 })
	if v, err := p.first.Get(t.Context(), id); err != nil || v.State != tasksstore.Succeeded || v.Owner != "of-s1@s1" {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestTaskOfAnotherServer reads and cancels a task that runs at another server.
func TestTaskOfAnotherServer(t *testing.T) {
	p := newTaskPair(t)
	if _, err := p.client.Task(t.Context(), "s1", "missing"); vedette.KindOf(err) != vedette.NotFound {
		t.Errorf("got %v", err)
	}
	if err := p.client.CancelTask(t.Context(), "s1", "missing", false); vedette.KindOf(err) != vedette.NotFound {
		t.Errorf("got %v", err)
	}
	if _, err := p.client.Task(t.Context(), "s3", "missing"); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("got %v", err)
	}
	id := p.submit(t, p.first, "x")
	<-p.cluster.reached
	v, err := p.second.Get(t.Context(), id)
	if err != nil || !strings.Contains(v.History[len(v.History)-1].Status, "Submitting manifest service web") {
		t.Errorf("got %+v, %v", v, err)
	}
	if err := p.second.Cancel(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	if v, err := p.second.Get(t.Context(), id); err != nil || v.State != tasksstore.Failed {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestCopiesThatAreNotValid sends what no server sends.
func TestCopiesThatAreNotValid(t *testing.T) {
	p := newTaskPair(t)
	head := func(owner string) []byte {
		return []byte(`{"head":{"id":"t","copy":"c","owner":"` + owner + `","ops":1}}`)
	}
	whole := func(frame []byte) *peerproto.CopyUp {
		return &peerproto.CopyUp{Content: frame, Size: uint64(len(frame))}
	}
	for name, messages := range map[string][]*peerproto.CopyUp{
		"no size":                  {{Content: []byte("{}")}},
		"too large":                {{Content: []byte("{}"), Size: maxCopyFrame + 1}},
		"a large first frame":      {{Content: []byte("{}"), Size: 1 << 20, Continues: true}},
		"more than was announced":  {{Content: []byte("{"), Size: 2, Continues: true}, {Content: []byte("}}")}},
		"less than was announced":  {{Content: []byte("{}"), Size: 3}},
		"not JSON":                 {whole([]byte("hunter2"))},
		"no task":                  {whole([]byte(`{"from":{"op":0,"body":{}}}`))},
		"a task of another server": {whole(head("of-s1@s1"))},
		"of another process":       {whole(head("other@s2"))},
		"two tasks":                {whole(head("of-s2@s2")), whole(head("of-s2@s2"))},
		"a step before the rest":   {whole(head("of-s2@s2")), whole([]byte(`{"step":{"asked":"a"}}`))},
		"nothing":                  {whole(head("of-s2@s2")), whole([]byte(`{}`))},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := p.client.tasksClient("s1")
			if err != nil {
				t.Fatal(err)
			}
			stream, err := client.Copy(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if code := status.Code(err); code != codes.InvalidArgument || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
	awaitTasks(t, func() bool { return p.first.Copies() == 0 })
}

func awaitTasks(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("timeout")
		}
	}
}
