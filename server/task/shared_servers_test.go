package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// installation is servers that share a database, and the cluster that all of them reach.
type installation struct {
	t       *testing.T
	rows    *memoryStore
	servers map[vedette.ServerID]*sharedServer
	release chan struct{} // closed when the test ends, so that what hangs ends

	mu      sync.Mutex
	ops     map[vedette.OperationID]*worldOp
	order   []string       // what was executed, in order
	effects map[string]int // how often each change took effect
	count   int            // operations that were sent
	change  chan struct{}  // closed and replaced when a server starts, ends or stops
	hook    func(n int, s *sharedServer, op vedette.Operation, isAfter bool) (isLost bool)
}

// worldOp is an operation in the history.
type worldOp struct {
	ended   bool
	effects int // at the agent, which executes an id once
	outcome vedette.Outcome
}

// sharedServer is one of the servers. It is dead for the others when it was killed, and when it is frozen.
type sharedServer struct {
	*testServer
	in   *installation
	id   vedette.ServerID
	stop func()

	mu          sync.Mutex
	dead        bool
	cutOff      map[vedette.ServerID]bool
	streams     []*memoryStream
	isStopping  bool          // it takes no tasks
	standsStill chan struct{} // it reads no frames until this is closed; nil if it does
}

func newSharedInstallation(t *testing.T, servers int) *installation {
	in := &installation{t: t, rows: newMemoryStore(), servers: map[vedette.ServerID]*sharedServer{}, release: make(chan struct{}),
		ops: map[vedette.OperationID]*worldOp{}, effects: map[string]int{}, change: make(chan struct{})}
	for i := range servers {
		in.add(vedette.ServerID(fmt.Sprint("s", i)))
	}
	t.Cleanup(func() { close(in.release) })
	return in
}

func (in *installation) changed() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.change
}

// setHook replaces the hook while tasks run.
func (in *installation) setHook(hook func(n int, s *sharedServer, op vedette.Operation, isAfter bool) (isLost bool)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hook = hook
}

func (in *installation) notify() {
	in.mu.Lock()
	defer in.mu.Unlock()
	close(in.change)
	in.change = make(chan struct{})
}

// add starts a server.
func (in *installation) add(id vedette.ServerID) *sharedServer {
	s := &sharedServer{in: in, id: id, cutOff: map[vedette.ServerID]bool{}}
	s.testServer = newServer(task.Config{Server: id, Store: sharedStore{in.rows, s}, Output: task.OutputAll, MaxCopyBytes: 4 << 20, Sharing: &task.Sharing{
		Process: "process-of-" + string(id), Peers: s, Candidates: s.candidates, Changed: in.changed, Resume: s.resume,
		KnownUID: func(context.Context, vedette.AccountName, vedette.DeleteArgs) string { return "uid-1" },
		IsAlive: func(_ context.Context, server vedette.ServerID, process string) bool {
			other := in.servers[server]
			return other != nil && !other.isDead() && task.IsProcess(process, "process-of-"+string(server))
		},
		Remote: func(caller []byte) (task.Remote, error) { return &sentRemote{in: in, caller: string(caller)}, nil },
	}})
	s.cluster.do = s.execute
	in.mu.Lock()
	in.servers[id] = s
	in.mu.Unlock()
	s.stop = s.startHousekeeping(in.t)
	return s
}

func (s *sharedServer) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

func (s *sharedServer) candidates() (others []vedette.ServerID) {
	for id, other := range s.in.servers {
		other.mu.Lock()
		isCandidate := other != s && !other.dead && !other.isStopping
		other.mu.Unlock()
		if isCandidate {
			others = append(others, id)
		}
	}
	slices.Sort(others)
	return others
}

// kill ends a server, or freezes it. The others find that 3.5 s later.
func (s *sharedServer) kill() {
	s.mu.Lock()
	s.dead = true
	streams := s.streams
	s.streams = nil
	s.mu.Unlock()
	for _, stream := range streams {
		stream.close()
	}
	time.AfterFunc(3500*time.Millisecond, func() {
		for id, other := range s.in.servers {
			if id != s.id {
				other.ServerEnded(s.id)
			}
		}
		s.in.notify()
	})
}

// sharedStore refuses what a server writes that was evicted.
type sharedStore struct {
	*memoryStore
	server *sharedServer
}

func (s sharedStore) check() error {
	if s.server.isDead() {
		return fmt.Errorf("%w: %w", vedette.Errorf(vedette.Unavailable, "another server has evicted this one"), lease.ErrLost)
	}
	return nil
}

func (s sharedStore) CreateTask(ctx context.Context, row tasks.Task) (tasks.Task, bool, error) {
	if err := s.check(); err != nil {
		return row, false, err
	}
	return s.memoryStore.CreateTask(ctx, row)
}

func (s sharedStore) SaveTask(ctx context.Context, row tasks.Task) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.memoryStore.SaveTask(ctx, row)
}

func (s sharedStore) AcquireTask(ctx context.Context, id string, from, to vedette.ServerID) (tasks.Task, error) {
	if err := s.check(); err != nil {
		return tasks.Task{}, err
	}
	return s.memoryStore.AcquireTask(ctx, id, from, to)
}

func (s sharedStore) TouchTasks(context.Context, vedette.ServerID, time.Time) error {
	s.server.in.t.Error("a server that shares its database writes heartbeats of tasks")
	return nil
}

// execute is the dispatcher of a server: it records an operation, and the one agent executes it.
func (s *sharedServer) execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	in := s.in
	in.mu.Lock()
	if op.Changes() && s.isDead() { // the history is not written
		in.mu.Unlock()
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusServiceUnavailable, Message: "the lease is lost"}
	}
	row := in.ops[op.ID]
	if row == nil {
		row = &worldOp{}
		in.ops[op.ID] = row
	} else if op.Changes() {
		in.mu.Unlock()
		in.t.Errorf("operation %s is executed twice", op.ID)
		return vedette.Outcome{State: vedette.Failed, Reason: vedette.ReasonAlreadyAccepted}
	}
	in.mu.Unlock()
	return s.deliver(ctx, row, op)
}

func (s *sharedServer) deliver(ctx context.Context, row *worldOp, op vedette.Operation) vedette.Outcome {
	in := s.in
	in.mu.Lock()
	in.count++
	n, hook := in.count, in.hook
	in.mu.Unlock()
	lost := func() vedette.Outcome {
		select {
		case <-ctx.Done():
		case <-in.release:
		}
		return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Message: "it is unknown whether this took effect"}
	}
	if hook != nil && hook(n, s, op, false) {
		return lost()
	}
	in.mu.Lock()
	row.effects++
	if row.effects == 1 {
		row.outcome = in.applyLocked(op)
	}
	in.mu.Unlock()
	if hook != nil && hook(n, s, op, true) {
		return lost()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	row.ended = true
	return row.outcome
}

// applyLocked is the cluster.
func (in *installation) applyLocked(op vedette.Operation) vedette.Outcome {
	out := doneOutcome(op)
	switch op.Args.(type) {
	case vedette.VersionArgs:
		if in.effects["create web-v003"] > 0 {
			out.Result = json.RawMessage(`{"number":3,"exists":true,"latest":"web-v003"}`)
		}
	case vedette.HistoryArgs: // it goes on while a task stands still
		out.Result = json.RawMessage(fmt.Sprintf(`[{"revision":%d},{"revision":%d}]`, 5+in.count, 6+in.count))
	}
	name := nameOf(op)
	in.order = append(in.order, name)
	if op.Changes() {
		in.effects[name]++
	}
	return out
}

// nameOf names an operation, without what differs between runs.
func nameOf(op vedette.Operation) string {
	switch a := op.Args.(type) {
	case vedette.ApplyArgs:
		var m struct{ Metadata struct{ Name string } }
		_ = json.Unmarshal(a.Manifest, &m)
		if a.Strategy == vedette.StrategyCreateOnly {
			return "create " + m.Metadata.Name
		}
		return "apply " + m.Metadata.Name
	case vedette.UndoArgs:
		return fmt.Sprintf("undo to %d", a.Revision)
	}
	return strings.TrimSpace(string(op.Args.Verb()) + " " + vedette.TargetOf(op.Args).Name)
}

// resume is dispatch.Resume of this cluster.
func (s *sharedServer) resume(ctx context.Context, op vedette.Operation) vedette.Outcome {
	s.in.mu.Lock()
	row := s.in.ops[op.ID]
	var ended bool
	var outcome vedette.Outcome
	if row != nil {
		ended, outcome = row.ended, row.outcome
	}
	s.in.mu.Unlock()
	switch {
	case row == nil:
		return s.cluster.Execute(ctx, op)
	case ended:
		return vedette.Outcome{ID: op.ID, State: outcome.State, Status: outcome.Status, Message: outcome.Message, Keys: outcome.Keys}
	case !op.Idempotent():
		return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout,
			Message: "it is unknown whether this took effect: the server that accepted it stopped before the outcome arrived"}
	}
	return s.deliver(ctx, row, op)
}

// sharedServer implements task.Peers.

func (s *sharedServer) peer(id vedette.ServerID) (*sharedServer, error) {
	other := s.in.servers[id]
	s.mu.Lock()
	isCut := s.cutOff[id] || s.dead
	s.mu.Unlock()
	if other == nil || isCut || other.isDead() {
		return nil, vedette.Errorf(vedette.Unavailable, "server %s does not answer", id)
	}
	return other, nil
}

func (s *sharedServer) Task(_ context.Context, at vedette.ServerID, id string) ([]byte, error) {
	other, err := s.peer(at)
	if err != nil {
		return nil, err
	}
	return other.RunningBody(id)
}

func (s *sharedServer) CancelTask(ctx context.Context, at vedette.ServerID, id string, retryable bool) error {
	other, err := s.peer(at)
	if err != nil {
		return err
	}
	return other.CancelRunning(ctx, id, retryable)
}

// memoryStream is a task.CopyStream between two servers of this process.
type memoryStream struct {
	frames chan []byte
	taken  chan uint64
	closed chan struct{}
	close  func()
}

func (m *memoryStream) Send(frame []byte) error {
	select {
	case m.frames <- slices.Clone(frame):
		return nil
	case <-m.closed:
		return io.EOF
	}
}

func (m *memoryStream) Receive() (uint64, error) {
	select {
	case n := <-m.taken:
		return n, nil
	case <-m.closed:
		return 0, io.EOF
	}
}

func (s *sharedServer) CopyTask(ctx context.Context, to vedette.ServerID) (task.CopyStream, error) {
	other, err := s.peer(to)
	if err != nil {
		return nil, err
	}
	m := &memoryStream{frames: make(chan []byte), taken: make(chan uint64), closed: make(chan struct{})}
	m.close = sync.OnceFunc(func() { close(m.closed) })
	context.AfterFunc(ctx, m.close)
	for _, end := range []*sharedServer{s, other} {
		end.mu.Lock()
		end.streams = append(end.streams, m)
		end.mu.Unlock()
	}
	held, err := other.NewCopy(s.id, "process-of-"+string(s.id))
	if err != nil {
		return nil, err
	}
	go func() {
		defer m.close()
		defer held.Close()
		for n := uint64(1); !held.IsEnded(); n++ {
			var frame []byte
			select {
			case frame = <-m.frames:
			case <-m.closed:
				return
			}
			other.mu.Lock()
			standsStill := other.standsStill
			other.mu.Unlock()
			if standsStill != nil {
				<-standsStill
			}
			if held.Reserve(ctx, int64(len(frame))) != nil || held.Take(ctx, frame) != nil {
				return
			}
			select {
			case m.taken <- n:
			case <-m.closed:
				return
			}
		}
	}()
	return m, nil
}

// cut breaks the streams between two servers, and lets none begin until heal is called.
func (s *sharedServer) cut(other *sharedServer) (heal func()) {
	for _, ends := range [][2]*sharedServer{{s, other}, {other, s}} {
		ends[0].mu.Lock()
		ends[0].cutOff[ends[1].id] = true
		streams := ends[0].streams
		ends[0].streams = nil
		ends[0].mu.Unlock()
		for _, stream := range streams {
			stream.close()
		}
	}
	return func() {
		for _, ends := range [][2]*sharedServer{{s, other}, {other, s}} {
			ends[0].mu.Lock()
			ends[0].cutOff[ends[1].id] = false
			ends[0].mu.Unlock()
		}
	}
}

// sentRemote is an upstream Clouddriver that another server asks for a caller.
type sentRemote struct {
	in     *installation
	caller string
}

func (r *sentRemote) Caller() ([]byte, error) { return []byte(r.caller), nil }

func (r *sentRemote) Owns(_ context.Context, request task.Request) (bool, error) {
	return strings.HasPrefix(string(request.Account()), "aws"), nil
}

// Submit returns the first task for a request id, as Clouddriver does.
func (r *sentRemote) Submit(_ context.Context, _ []task.Request, requestID string) (string, error) {
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	r.in.effects["submit for "+r.caller+" as "+requestID]++
	return "remote of " + requestID, nil
}

func (r *sentRemote) Get(_ context.Context, id string) (task.RemoteTask, error) {
	time.Sleep(time.Second)
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	r.in.count++
	done := r.in.count > 5
	history := []task.HistoryEntry{line("begun"), line("ended " + id)}
	if !done {
		history = history[:1]
	}
	return task.RemoteTask{Completed: done, History: history}, nil
}

// awaitEnd waits until a task has ended, and returns it as a server shows it.
func (s *sharedServer) awaitEnd(t *testing.T, id string) taskView {
	t.Helper()
	for range 100 {
		synctest.Wait()
		if v := s.getTask(t, id); v.Status.Completed {
			return v
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("task %s does not end: %+v", id, s.getTask(t, id))
	return taskView{}
}
