package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// history is where operations are noted.
type history interface {
	BeginOperation(ctx context.Context, row store.OperationRow) error
	EndOperations(ctx context.Context, rows []store.OperationRow) error
	MarkOperationsLost(ctx context.Context, server vedette.ServerID, message string, at time.Time) (int, error)
	ExpireOperations(ctx context.Context, due time.Time, message string, at time.Time) (int, error)
	PurgeOperations(ctx context.Context, before time.Time, limit int) (int, error)
}

// diary writes the history. What changes something is noted before it is sent;
// ends are noted in batches.
type diary struct {
	cfg  Config
	book history
	log  *slog.Logger

	mu      sync.Mutex
	ends    []end
	unnoted map[vedette.OperationID]bool // of ends, and of those that are just being noted
	ready   chan struct{}
}

// end is how an operation ended.
type end struct {
	row   store.OperationRow
	noted chan struct{} // closed when it is in the history, or never will be
}

// mostEnds bounds what waits for a database that is away, at some 500 bytes each.
// What is beyond is lost to the history, oldest first.
const mostEnds = 10_000

func newDiary(cfg Config, b history, log *slog.Logger) *diary {
	return &diary{cfg: cfg, book: b, log: log, unnoted: map[vedette.OperationID]bool{}, ready: make(chan struct{}, 1)}
}

const gone = "it is unknown whether this took effect: the server that accepted it ended before the outcome came. Look at the object before you try again"

// recover marks as lost what was under way when the last process ended.
func (y *diary) recover(ctx context.Context) error {
	n, err := y.book.MarkOperationsLost(ctx, y.cfg.Server, gone, time.Now())
	if n > 0 {
		y.log.Info("operations of the last run are lost", "count", n)
	}
	return err
}

// begin notes an operation before it is sent. The error is vedette.Conflict where
// one of its ID was accepted before.
func (y *diary) begin(ctx context.Context, e *errand) error {
	y.mu.Lock()
	ended := y.unnoted[e.op.ID]
	y.mu.Unlock()
	if ended {
		return vedette.Errorf(vedette.Conflict, "the operation %s has ended before", e.op.ID)
	}
	return y.book.BeginOperation(ctx, y.row(e, vedette.Outcome{State: store.Pending}))
}

// last is what the history is to hold of an operation that ends now.
func (y *diary) last(e *errand, out vedette.Outcome) store.OperationRow {
	row := y.row(e, out)
	row.Ended = time.Now()
	return row
}

// ended notes how an operation ended, soon. The channel that it returns is closed
// when it is in the history.
func (y *diary) ended(row store.OperationRow) <-chan struct{} {
	last := end{row, make(chan struct{})}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.unnoted[row.ID] = true
	y.ends = append(y.ends, last)
	y.trimLocked()
	y.wake()
	return last.noted
}

func (y *diary) trimLocked() {
	for len(y.ends) > mostEnds {
		y.settleLocked(y.ends[0])
		y.ends = y.ends[1:]
	}
}

func (y *diary) settleLocked(e end) {
	delete(y.unnoted, e.row.ID)
	close(e.noted)
}

func (y *diary) wake() {
	select {
	case y.ready <- struct{}{}:
	default:
	}
}

func (y *diary) row(e *errand, out vedette.Outcome) store.OperationRow {
	row := store.OperationRow{
		ID: e.op.ID, Account: e.op.Account, Server: y.cfg.Server, Verb: verbOf(e.op), DryRun: e.op.DryRun, Target: e.target, User: e.op.User, Origin: e.op.Origin,
		State: out.State, Status: out.Status, Reason: out.Reason, Message: out.Message, Accepted: e.accepted, Deadline: e.op.Deadline,
	}
	if e.sent != nil {
		row.Agent, row.Sent = e.sent.agent, e.sent.at
	}
	return row
}

func verbOf(op vedette.Operation) vedette.Verb {
	if op.Args == nil {
		return ""
	}
	return op.Args.Verb()
}

// targetOf says in short what an operation is about.
func targetOf(args vedette.Args) string {
	switch a := args.(type) {
	case vedette.ApplyArgs:
		return manifestTarget(a.Manifest, a.Namespace)
	case vedette.VersionArgs:
		return manifestTarget(a.Manifest, a.Namespace)
	case vedette.DeleteArgs:
		if a.Name == "" {
			return place(a.Kind, namespaceOf(a), "("+chosenBy(a.LabelSelector, a.FieldSelector, a.All)+")")
		}
	case vedette.PruneArgs:
		return strings.TrimSpace(strings.Join(a.Namespaces, ",") + " (" + chosenBy(a.LabelSelector, "", a.All) + ")")
	case vedette.ListArgs:
		return place(a.Kind, a.Namespace, "("+a.LabelSelector+")")
	case vedette.MetricsArgs:
		return place("Pod", a.Namespace, a.Name)
	case vedette.DiscoverArgs:
		return ""
	}
	if t, ok := args.(interface{ GetTarget() vedette.Target }); ok {
		target := t.GetTarget()
		return place(target.Kind, target.Namespace, target.Name)
	}
	return ""
}

// namespaceOf is where a delete chooses.
func namespaceOf(a vedette.DeleteArgs) string {
	if a.AllNamespaces {
		return "*"
	}
	return a.Namespace
}

func chosenBy(labels, fields string, all bool) string {
	if all {
		return "all"
	}
	return strings.Trim(labels+","+fields, ",")
}

func place(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

func manifestTarget(manifest []byte, namespace string) string {
	var m struct {
		Kind     string
		Metadata struct{ Name, GenerateName, Namespace string }
	}
	if json.Unmarshal(manifest, &m) != nil {
		return "" // YAML, or nothing at all, which the agent says
	}
	if m.Metadata.Namespace == "" {
		m.Metadata.Namespace = namespace
	}
	return place(m.Kind, m.Metadata.Namespace, m.Metadata.Name+m.Metadata.GenerateName)
}

// run notes ends until ctx is over, and purges what is old.
func (y *diary) run(ctx context.Context) {
	purge, overdue := time.NewTicker(10*time.Minute), time.NewTicker(time.Minute)
	defer purge.Stop()
	defer overdue.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-y.ready:
			y.note(ctx)
		case <-overdue.C:
			y.expire(ctx)
		case <-purge.C:
			y.purge(ctx)
		}
	}
}

// mostOverdue is how long after its deadline an operation may be pending: its
// server notes its end within seconds, unless the database was away or the clocks
// differ.
const mostOverdue = 5 * time.Minute

// expire ends what servers have left behind that don't come back under their names.
func (y *diary) expire(ctx context.Context) {
	now := time.Now()
	n, err := y.book.ExpireOperations(ctx, now.Add(-mostOverdue), gone, now)
	switch {
	case err != nil && ctx.Err() == nil:
		y.log.Warn("operations that are overdue could not be marked as lost; tried again", "error", err)
	case n > 0:
		y.log.Info("operations of servers that are gone are lost", "count", n)
	}
}

// note writes what has ended. Where the database is away it waits a little and
// tries again, and what ends meanwhile joins it.
func (y *diary) note(ctx context.Context) {
	y.mu.Lock()
	ends := y.ends
	y.ends = nil
	y.mu.Unlock()
	left, err := y.write(ctx, ends)
	y.mu.Lock()
	y.ends = append(left, y.ends...)
	y.trimLocked()
	y.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		return
	}
	y.log.Warn("ends of operations are not in the history yet; tried again", "count", len(left), "error", err)
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
		y.wake()
	}
}

// write stores ends, and returns those that could not be. One that the database
// will never take is left out, and does not take the others with it.
func (y *diary) write(ctx context.Context, ends []end) ([]end, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	rows := make([]store.OperationRow, len(ends))
	for i, e := range ends {
		rows[i] = e.row
	}
	err := y.book.EndOperations(ctx, rows)
	switch {
	case err != nil && vedette.KindOf(err) != vedette.Invalid:
		return ends, err
	case err != nil && len(ends) > 1:
		first, err := y.write(ctx, ends[:len(ends)/2])
		second, err2 := y.write(ctx, ends[len(ends)/2:])
		return append(slices.Clone(first), second...), errors.Join(err, err2)
	case err != nil:
		y.log.Error("an operation's end is left out of the history", "operation", ends[0].row.ID, "error", err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, e := range ends {
		y.settleLocked(e)
	}
	return nil, nil
}

// close notes what ended while the server was ending.
func (y *diary) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	y.note(ctx)
}

func (y *diary) purge(ctx context.Context) {
	for {
		n, err := y.book.PurgeOperations(ctx, time.Now().Add(-y.cfg.KeepHistory), 1000)
		if err != nil {
			y.log.Warn("old operations could not be purged; tried again", "error", err)
		}
		if n < 1000 || err != nil {
			return
		}
	}
}
