package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/store/history"
)

type historyStore interface {
	BeginOperation(ctx context.Context, row history.Operation) error
	Operation(ctx context.Context, id vedette.OperationID) (history.Operation, error)
	EndOperations(ctx context.Context, rows []history.Operation) error
	// Histories returns which database has which of some accounts; nil if there is one.
	Histories(ctx context.Context, accounts []vedette.AccountName) (map[*history.History][]vedette.AccountName, error)
	MoveOperation(ctx context.Context, id vedette.OperationID, from, to vedette.ServerID, deadline time.Time) (bool, error)
	MarkOperationsLost(ctx context.Context, server vedette.ServerID, message string, at time.Time) (int, error)
	ExpireOperations(ctx context.Context, due time.Time, message string, at time.Time) (int, error)
	PurgeOperations(ctx context.Context, before time.Time, limit int) (n int, bytes int64, err error)
	PurgeOperationsOf(ctx context.Context, verb vedette.Verb, before time.Time, limit int) (n int, bytes int64, err error)
	PurgeOrphans(ctx context.Context, limit int) (int, error)
	HistorySize(ctx context.Context) (history.Size, error)
	HistoryBytesOf(ctx context.Context, verb vedette.Verb) (int64, error)
	UndoneOperation(ctx context.Context, account vedette.AccountName, key vedette.Key, before, after string) (vedette.OperationID, error)
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
	detailBytes int                          // of what the operations of unrecorded changed
	size        history.Size                 // when it was last measured
	wakeup      chan struct{}
	databases   endsByDatabase
}

type endRecord struct {
	row      history.Operation
	recorded chan struct{} // closed when it is in the history or dropped
}

// maxPendingEnds limits the ends that wait for an unavailable database, at about 500
// bytes each. If there are more, the oldest are dropped.
const maxPendingEnds = 10_000

// maxPendingDetails limits what these operations changed, in bytes. If there is more, their ends say so.
const maxPendingDetails = 8 << 20

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
	return r.store.BeginOperation(ctx, r.row(f, vedette.Outcome{State: history.Pending}))
}

// finalRow returns the row of an operation that ends now.
func (r *recorder) finalRow(f *inflight, out vedette.Outcome) history.Operation {
	row := r.row(f, out)
	row.Ended = time.Now()
	return row
}

// recordEnd queues the end of an operation. The returned channel is closed when it is
// in the history.
func (r *recorder) recordEnd(row history.Operation) <-chan struct{} {
	record := endRecord{row, make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unrecorded[row.ID] = true
	if n := detailBytes(row); r.detailBytes+n > maxPendingDetails {
		for i := range row.Changes {
			row.Changes[i].Patch, row.Changes[i].Note = nil, "the patch is lost, because the database did not take it in time"
		}
		if r.detailBytes+detailBytes(row) > 2*maxPendingDetails { // the objects alone are too many
			n := len(row.Changes)
			row.Changes, row.Objects = slices.Clone(row.Changes[:min(1, n)]), nil
			for i := range row.Changes {
				row.Changes[i].Note = fmt.Sprintf("what changed of %d objects is lost, because the database did not take it in time", n)
			}
		}
		record.row = row
	}
	r.detailBytes += detailBytes(row)
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
	r.detailBytes -= detailBytes(e.row)
	close(e.recorded)
}

func (r *recorder) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// detailBytes returns about what the changes of an operation take in memory.
func detailBytes(row history.Operation) int {
	n := 0
	for i := range row.Changes {
		n += 300 + len(row.Changes[i].Patch) + textBytes(&row.Changes[i])
	}
	for _, key := range row.Objects {
		n += 100 + len(key.Name) + len(key.Namespace) + len(key.Kind.Name) + len(key.Kind.Group)
	}
	return n
}

func (r *recorder) row(f *inflight, out vedette.Outcome) history.Operation {
	row := history.Operation{
		ID: f.op.ID, Account: f.op.Account, Server: r.cfg.Server, Verb: verbOf(f.op), DryRun: f.op.DryRun, Target: f.target,
		Requester: f.op.Requester, Origin: f.op.Origin, Digest: f.op.Digest,
		Kind: f.object.kind, Namespace: f.object.namespace, Name: f.object.name,
		State: out.State, Status: out.Status, Reason: vedette.CleanText(out.Reason, maxNote), Message: vedette.CleanText(out.Message, maxMessage),
		Accepted: f.accepted, Deadline: f.op.Deadline,
	}
	setObjects(&row, out)
	if last := f.lastDelivery(); last != nil {
		row.Agent, row.Sent = last.Agent.ID, last.SentAt
	}
	return row
}

// maxMessage is the maximum length of an outcome's message in the history, in bytes. Agents may send longer ones, which must not take
// memory while the database does not answer.
const maxMessage = 4096

func verbOf(op vedette.Operation) vedette.Verb {
	if op.Args == nil {
		return ""
	}
	return op.Args.Verb()
}

// objectName names the object of an operation, as its request does.
type objectName struct{ kind, namespace, name string }

func (o objectName) String() string { return formatTarget(o.kind, o.namespace, o.name) }

// objectOf returns the object of an operation; empty if it has none, or several.
func objectOf(args vedette.Args) objectName {
	switch a := args.(type) {
	case vedette.ApplyArgs:
		return manifestObject(a.Manifest, a.Namespace)
	case vedette.VersionArgs:
		return manifestObject(a.Manifest, a.Namespace)
	case vedette.MetricsArgs:
		return objectName{"Pod", a.Namespace, a.Name}
	case vedette.DeleteArgs:
		return objectName{a.Kind, a.Namespace, a.Name}
	}
	target := vedette.TargetOf(args)
	return objectName{target.Kind, target.Namespace, target.Name}
}

// setObjects names what an operation changed as the cluster does.
func setObjects(row *history.Operation, out vedette.Outcome) {
	row.Changes, row.Undoes = out.Changes, out.Undoes
	var keys []vedette.Key
	seen := map[vedette.Key]bool{}
	add := func(key vedette.Key) {
		if !seen[key] && len(keys) < vedette.MaxChangeObjects {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, key := range out.Keys {
		cleanKey(&key)
		add(key)
	}
	for _, c := range out.Changes {
		add(c.Key)
	}
	switch len(keys) {
	case 0:
	case 1:
		row.Kind = keys[0].Kind.String()
		row.Namespace = keys[0].Namespace
		row.Name = keys[0].Name
	default:
		row.Objects = keys
	}
}

// targetOf returns a short description of the object of an operation.
func targetOf(args vedette.Args, object objectName) string {
	switch a := args.(type) {
	case vedette.ApplyArgs, vedette.VersionArgs:
		if object.kind == "" {
			return "" // YAML or invalid; the agent will report it
		}
		return object.String()
	case vedette.DeleteArgs:
		if a.Name == "" {
			return formatTarget(a.Kind, deleteNamespace(a), "("+formatSelector(a.LabelSelector, a.FieldSelector, a.All)+")")
		}
	case vedette.PruneArgs:
		return strings.TrimSpace(strings.Join(a.Namespaces, ",") + " (" + formatSelector(a.LabelSelector, "", a.All) + ")")
	case vedette.ListArgs:
		return formatTarget(a.Kind, a.Namespace, "("+a.LabelSelector+")")
	case vedette.DiscoverArgs:
		return ""
	case vedette.AccessArgs:
		return accessTarget(a)
	}
	if object == (objectName{}) {
		return ""
	}
	return object.String()
}

// accessTarget returns what a question about permissions is about.
func accessTarget(a vedette.AccessArgs) string {
	namespace := a.Namespace
	if a.AllNamespaces {
		namespace = "*"
	}
	if a.List {
		return strings.TrimSpace(namespace + " (all)")
	}
	if a.Path != "" {
		return a.Action + " " + a.Path
	}
	return a.Action + " " + formatTarget(a.Kind, namespace, a.Name)
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

// manifestObject returns the object of a manifest; empty of YAML, which the agent reads.
func manifestObject(manifest []byte, namespace string) objectName {
	var m struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
			Namespace    string `json:"namespace"`
		} `json:"metadata"`
	}
	if exactjson.Unmarshal(manifest, &m, exactjson.Limits{}) != nil {
		return objectName{}
	}
	if m.Metadata.Namespace == "" {
		m.Metadata.Namespace = namespace
	}
	return objectName{m.Kind, m.Metadata.Namespace, m.Metadata.Name + m.Metadata.GenerateName}
}

// run writes ends and marks overdue operations until ctx ends.
func (r *recorder) run(ctx context.Context) {
	defer r.databases.writing.Wait()
	expireTicker := time.NewTicker(time.Minute)
	defer expireTicker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wakeup:
			r.flush(ctx)
		case <-expireTicker.C:
			r.expire(ctx)
		}
	}
}

// runPurge purges the history until ctx ends. It is not part of run: a large history takes minutes, and callers wait until the ends
// of their operations are written.
func (r *recorder) runPurge(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Minute)
	defer ticker.Stop()
	r.purgeOrphans(ctx)
	for {
		r.purge(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
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
	byDatabase, err := r.databases.split(ctx, r.store, ends)
	if err != nil {
		r.written(ctx, ends, err)
		return
	}
	if byDatabase == nil {
		r.flushTo(ctx, r.store, ends)
		return
	}
	for store, ends := range byDatabase {
		r.databases.start(store, func() { r.flushTo(ctx, store, ends) }, r.wake, func() { r.putBack(ends) })
	}
}

// flushTo writes ends to one database.
func (r *recorder) flushTo(ctx context.Context, store endStore, ends []endRecord) {
	remaining, err := r.write(ctx, store, ends)
	r.written(ctx, remaining, err)
}

// putBack queues ends again that are not written.
func (r *recorder) putBack(ends []endRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pendingEnds = append(slices.Clone(ends), r.pendingEnds...)
	r.trimLocked()
}

// written queues what is not written again, and waits a second if the database is unavailable.
func (r *recorder) written(ctx context.Context, remaining []endRecord, err error) {
	r.putBack(remaining)
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
func (r *recorder) write(ctx context.Context, store endStore, ends []endRecord) ([]endRecord, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	rows := make([]history.Operation, len(ends))
	for i, e := range ends {
		rows[i] = e.row
	}
	err := store.EndOperations(ctx, rows)
	switch {
	case err != nil && vedette.KindOf(err) != vedette.Invalid:
		return ends, err
	case err != nil && len(ends) > 1:
		first, err := r.write(ctx, store, ends[:len(ends)/2])
		second, err2 := r.write(ctx, store, ends[len(ends)/2:])
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
	r.databases.writing.Wait()
}

// History returns how long operations are kept, how many bytes they may take, and what they took when it was last measured.
func (d *Dispatcher) History() (keep time.Duration, maxBytes int64, size history.Size) {
	d.recorder.mu.Lock()
	defer d.recorder.mu.Unlock()
	return d.cfg.KeepHistory, d.cfg.MaxHistory, d.recorder.size
}

// purgeBatch is how many operations one transaction deletes.
const purgeBatch = 100

// minHistory is how long operations are kept however much they take, because operations with an id may be sent again.
const minHistory = time.Hour

// purge deletes what is older than KeepHistory, and what exceeds MaxHistory.
func (r *recorder) purge(ctx context.Context) {
	for {
		n, _, err := r.store.PurgeOperations(ctx, time.Now().Add(-r.cfg.KeepHistory), purgeBatch)
		if err != nil {
			r.logPurgeError(ctx, err)
			return
		}
		if n < purgeBatch {
			break
		}
	}
	size, err := r.store.HistorySize(ctx)
	measured := size.Bytes
	if err == nil {
		err = r.shrink(ctx, &size)
	}
	if err == nil && size.Bytes != measured {
		size, err = r.store.HistorySize(ctx)
	}
	if err != nil {
		r.logPurgeError(ctx, err)
		return
	}
	r.mu.Lock()
	r.size = size
	r.mu.Unlock()
}

// shrink deletes the oldest operations until the history is not too large: reads first. The reads of the last hour, which stay, do not
// count for the others. Otherwise somebody who may only read could push out the record of what others have changed.
func (r *recorder) shrink(ctx context.Context, size *history.Size) error {
	for _, verb := range readVerbs {
		if err := r.shrinkTo(ctx, r.cfg.MaxHistory, size, func(before time.Time) (int, int64, error) {
			return r.store.PurgeOperationsOf(ctx, verb, before, purgeBatch)
		}); err != nil {
			return err
		}
	}
	if size.Bytes <= r.cfg.MaxHistory {
		return nil
	}
	maxBytes := r.cfg.MaxHistory
	for _, verb := range readVerbs {
		reads, err := r.store.HistoryBytesOf(ctx, verb)
		if err != nil {
			return err
		}
		maxBytes += reads
	}
	return r.shrinkTo(ctx, maxBytes, size, func(before time.Time) (int, int64, error) {
		return r.store.PurgeOperations(ctx, before, purgeBatch)
	})
}

// measureInterval is after how many batches the history is measured again: other servers of the database may delete, too.
const measureInterval = 20

// shrinkTo deletes batches of operations until the history is not too large, or none are left that may be deleted.
func (r *recorder) shrinkTo(ctx context.Context, maxBytes int64, size *history.Size,
	purge func(before time.Time) (n int, bytes int64, err error)) error {
	for batch, n := 1, purgeBatch; n == purgeBatch && size.Bytes > maxBytes; batch++ {
		var bytes int64
		var err error
		if n, bytes, err = purge(time.Now().Add(-minHistory)); err != nil {
			return err
		}
		size.Bytes -= bytes
		if batch%measureInterval != 0 {
			continue
		}
		if *size, err = r.store.HistorySize(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readVerbs change nothing in a cluster.
var readVerbs = func() (verbs []vedette.Verb) {
	for _, spec := range vedette.Verbs() {
		if spec.ReadOnly {
			verbs = append(verbs, spec.Verb)
		}
	}
	return verbs
}()

func (r *recorder) logPurgeError(ctx context.Context, err error) {
	if ctx.Err() == nil {
		r.log.Warn("failed to purge old operations; retrying", "error", err)
	}
}

// purgeOrphans deletes what servers of an older release have left.
func (r *recorder) purgeOrphans(ctx context.Context) {
	for {
		n, err := r.store.PurgeOrphans(ctx, purgeBatch)
		if err != nil {
			r.logPurgeError(ctx, err)
		}
		if n == 0 || err != nil {
			return
		}
	}
}

// maxUndoneLookup is how long the outcome of an undo waits for the search. It is short, to leave time for the write-through.
const maxUndoneLookup = maxWriteWait / 8

// findUndone returns the operation whose change an undo took back; empty if it is not known. An undo to an older revision takes back
// the changes of several operations, of which it is the last one that was still in effect.
func (r *recorder) findUndone(ctx context.Context, f *inflight, out vedette.Outcome) vedette.OperationID {
	if _, isUndo := f.op.Args.(vedette.UndoArgs); !isUndo || out.State != vedette.Done {
		return ""
	}
	for _, c := range out.Changes {
		if c.TemplateBefore == "" || c.TemplateBefore == c.TemplateAfter {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, maxUndoneLookup)
		defer cancel()
		id, err := r.store.UndoneOperation(ctx, f.op.Account, c.Key, c.TemplateBefore, c.TemplateAfter)
		if err != nil {
			r.log.WarnContext(ctx, "cannot find out which operation an undo took back", "operation", f.op.ID, "error", err)
		}
		return id
	}
	return ""
}
