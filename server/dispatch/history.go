package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/store"
)

// historyStore stores the history.
type historyStore interface {
	BeginOperation(ctx context.Context, row store.OperationRow) error
	EndOperations(ctx context.Context, rows []store.OperationRow) error
	MarkOperationsLost(ctx context.Context, server vedette.ServerID, message string, at time.Time) (int, error)
	ExpireOperations(ctx context.Context, due time.Time, message string, at time.Time) (int, error)
	PurgeOperations(ctx context.Context, before time.Time, limit int) (int, error)
}

// recorder writes the history. An operation that changes something is recorded before
// it is sent. Ends are recorded in batches.
type recorder struct {
	cfg   Config
	store historyStore
	log   *slog.Logger

	mu          sync.Mutex
	pendingEnds []endRecord
	unrecorded  map[vedette.OperationID]bool // operations whose end is pending or being written
	wakeup      chan struct{}
}

// endRecord is the end of an operation.
type endRecord struct {
	row      store.OperationRow
	recorded chan struct{} // closed when it is in the history or dropped
}

// maxPendingEnds limits the ends that wait for an unavailable database, at about 500
// bytes each. If there are more, the oldest are dropped.
const maxPendingEnds = 10_000

func newRecorder(cfg Config, b historyStore, log *slog.Logger) *recorder {
	return &recorder{cfg: cfg, store: b, log: log, unrecorded: map[vedette.OperationID]bool{}, wakeup: make(chan struct{}, 1)}
}

const serverGoneMessage = "it is unknown whether this took effect: the server that accepted it stopped before the outcome arrived. Look at the object before you try again"

// markLost marks the running operations of the previous process as lost.
func (r *recorder) markLost(ctx context.Context) error {
	n, err := r.store.MarkOperationsLost(ctx, r.cfg.Server, serverGoneMessage, time.Now())
	if n > 0 {
		r.log.Info("marked operations of the previous run as lost", "count", n)
	}
	return err
}

// recordStart records an operation before it is sent. The error is vedette.Conflict if
// its ID is already in use.
func (r *recorder) recordStart(ctx context.Context, f *inflight) error {
	r.mu.Lock()
	ended := r.unrecorded[f.op.ID]
	r.mu.Unlock()
	if ended {
		return vedette.Errorf(vedette.Conflict, "operation %s has already ended", f.op.ID)
	}
	return r.store.BeginOperation(ctx, r.row(f, vedette.Outcome{State: store.Pending}))
}

// finalRow returns the row of an operation that ends now.
func (r *recorder) finalRow(f *inflight, out vedette.Outcome) store.OperationRow {
	row := r.row(f, out)
	row.Ended = time.Now()
	return row
}

// recordEnd queues the end of an operation. The returned channel is closed when it is
// in the history.
func (r *recorder) recordEnd(row store.OperationRow) <-chan struct{} {
	record := endRecord{row, make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unrecorded[row.ID] = true
	r.pendingEnds = append(r.pendingEnds, record)
	r.trimLocked()
	r.wake()
	return record.recorded
}

func (r *recorder) trimLocked() {
	for len(r.pendingEnds) > maxPendingEnds {
		r.completeLocked(r.pendingEnds[0])
		r.pendingEnds = r.pendingEnds[1:]
	}
}

func (r *recorder) completeLocked(e endRecord) {
	delete(r.unrecorded, e.row.ID)
	close(e.recorded)
}

func (r *recorder) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

func (r *recorder) row(f *inflight, out vedette.Outcome) store.OperationRow {
	row := store.OperationRow{
		ID: f.op.ID, Account: f.op.Account, Server: r.cfg.Server, Verb: verbOf(f.op), DryRun: f.op.DryRun, Target: f.target, User: f.op.User,
		Origin: f.op.Origin, Digest: f.op.Digest,
		State: out.State, Status: out.Status, Reason: out.Reason, Message: out.Message, Accepted: f.accepted, Deadline: f.op.Deadline,
	}
	if f.lastDelivery != nil {
		row.Agent, row.Sent = f.lastDelivery.agent, f.lastDelivery.sentAt
	}
	return row
}

func verbOf(op vedette.Operation) vedette.Verb {
	if op.Args == nil {
		return ""
	}
	return op.Args.Verb()
}

// targetOf returns a short description of the object of an operation.
func targetOf(args vedette.Args) string {
	switch a := args.(type) {
	case vedette.ApplyArgs:
		return manifestTarget(a.Manifest, a.Namespace)
	case vedette.VersionArgs:
		return manifestTarget(a.Manifest, a.Namespace)
	case vedette.DeleteArgs:
		if a.Name == "" {
			return formatTarget(a.Kind, deleteNamespace(a), "("+formatSelector(a.LabelSelector, a.FieldSelector, a.All)+")")
		}
	case vedette.PruneArgs:
		return strings.TrimSpace(strings.Join(a.Namespaces, ",") + " (" + formatSelector(a.LabelSelector, "", a.All) + ")")
	case vedette.ListArgs:
		return formatTarget(a.Kind, a.Namespace, "("+a.LabelSelector+")")
	case vedette.MetricsArgs:
		return formatTarget("Pod", a.Namespace, a.Name)
	case vedette.DiscoverArgs:
		return ""
	}
	if targeted, ok := args.(interface{ GetTarget() vedette.Target }); ok {
		target := targeted.GetTarget()
		return formatTarget(target.Kind, target.Namespace, target.Name)
	}
	return ""
}

// deleteNamespace returns the namespace of a delete; "*" for all.
func deleteNamespace(a vedette.DeleteArgs) string {
	if a.AllNamespaces {
		return "*"
	}
	return a.Namespace
}

func formatSelector(labels, fields string, all bool) string {
	if all {
		return "all"
	}
	return strings.Trim(labels+","+fields, ",")
}

func formatTarget(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

func manifestTarget(manifest []byte, namespace string) string {
	var m struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
			Namespace    string `json:"namespace"`
		} `json:"metadata"`
	}
	if exactjson.Unmarshal(manifest, &m, exactjson.Limits{}) != nil {
		return "" // YAML or invalid; the agent will report it
	}
	if m.Metadata.Namespace == "" {
		m.Metadata.Namespace = namespace
	}
	return formatTarget(m.Kind, m.Metadata.Namespace, m.Metadata.Name+m.Metadata.GenerateName)
}

// run writes ends and purges old rows until ctx ends.
func (r *recorder) run(ctx context.Context) {
	purgeTicker, expireTicker := time.NewTicker(10*time.Minute), time.NewTicker(time.Minute)
	defer purgeTicker.Stop()
	defer expireTicker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wakeup:
			r.flush(ctx)
		case <-expireTicker.C:
			r.expire(ctx)
		case <-purgeTicker.C:
			r.purge(ctx)
		}
	}
}

// maxOverdue is how long after its deadline an operation may be pending. Its server
// records the end within seconds, unless the database was unavailable or the clocks
// differ.
const maxOverdue = 5 * time.Minute

// expire marks operations of servers that do not come back as lost.
func (r *recorder) expire(ctx context.Context) {
	now := time.Now()
	n, err := r.store.ExpireOperations(ctx, now.Add(-maxOverdue), serverGoneMessage, now)
	switch {
	case err != nil && ctx.Err() == nil:
		r.log.Warn("failed to mark overdue operations as lost; retrying", "error", err)
	case n > 0:
		r.log.Info("marked operations of stopped servers as lost", "count", n)
	}
}

// flush writes the queued ends. If the database is unavailable, it waits a second and
// retries together with the ends that were added meanwhile.
func (r *recorder) flush(ctx context.Context) {
	r.mu.Lock()
	ends := r.pendingEnds
	r.pendingEnds = nil
	r.mu.Unlock()
	remaining, err := r.write(ctx, ends)
	r.mu.Lock()
	r.pendingEnds = append(remaining, r.pendingEnds...)
	r.trimLocked()
	r.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		return
	}
	r.log.Warn("failed to record ends of operations; retrying", "count", len(remaining), "error", err)
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
		r.wake()
	}
}

// write stores ends and returns those that could not be stored. An end that the
// database will never accept is dropped, so that it does not block the others.
func (r *recorder) write(ctx context.Context, ends []endRecord) ([]endRecord, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	rows := make([]store.OperationRow, len(ends))
	for i, e := range ends {
		rows[i] = e.row
	}
	err := r.store.EndOperations(ctx, rows)
	switch {
	case err != nil && vedette.KindOf(err) != vedette.Invalid:
		return ends, err
	case err != nil && len(ends) > 1:
		first, err := r.write(ctx, ends[:len(ends)/2])
		second, err2 := r.write(ctx, ends[len(ends)/2:])
		return append(slices.Clone(first), second...), errors.Join(err, err2)
	case err != nil:
		r.log.Error("dropped the end of an operation from the history", "operation", ends[0].row.ID, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range ends {
		r.completeLocked(e)
	}
	return nil, nil
}

// close writes the ends of operations that ended during shutdown.
func (r *recorder) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r.flush(ctx)
}

func (r *recorder) purge(ctx context.Context) {
	for {
		n, err := r.store.PurgeOperations(ctx, time.Now().Add(-r.cfg.KeepHistory), 1000)
		if err != nil {
			r.log.Warn("failed to purge old operations; retrying", "error", err)
		}
		if n < 1000 || err != nil {
			return
		}
	}
}
