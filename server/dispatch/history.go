package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// history is where operations are noted.
type history interface {
	BeginOperation(ctx context.Context, row store.OperationRow) error
	EndOperations(ctx context.Context, rows []store.OperationRow) error
	LoseOperations(ctx context.Context, server vedette.ServerID, message string, at time.Time) (int, error)
	PurgeOperations(ctx context.Context, before time.Time, limit int) (int, error)
}

// diary writes the history. What changes something is noted before it is sent;
// ends are noted in batches, behind the outcome's back.
type diary struct {
	cfg  Config
	book history
	log  *slog.Logger

	mu    sync.Mutex
	ends  []store.OperationRow
	ready chan struct{}
}

// mostEnds bounds what waits for a database that is away, at some 500 bytes each.
// What is beyond is lost to the history, oldest first.
const mostEnds = 10_000

func newDiary(cfg Config, b history, log *slog.Logger) *diary {
	return &diary{cfg: cfg, book: b, log: log, ready: make(chan struct{}, 1)}
}

func (y *diary) begin(ctx context.Context, e *errand) error {
	return y.book.BeginOperation(ctx, y.row(e, vedette.Outcome{State: store.Pending}))
}

func (y *diary) ended(e *errand, out vedette.Outcome) {
	row := y.row(e, out)
	row.Ended = time.Now()
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.ends) == mostEnds {
		y.ends = y.ends[1:]
	}
	y.ends = append(y.ends, row)
	select {
	case y.ready <- struct{}{}:
	default:
	}
}

func (y *diary) row(e *errand, out vedette.Outcome) store.OperationRow {
	row := store.OperationRow{
		ID: e.op.ID, Account: e.op.Account, Server: y.cfg.Server, Verb: verbOf(e.op), Target: targetOf(e.op.Args), User: e.op.User, Origin: e.op.Origin,
		State: out.State, Status: out.Status, Reason: out.Reason, Message: out.Message, Accepted: e.accepted,
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
			return place(a.Kind, a.Namespace, "("+a.LabelSelector+")")
		}
	case vedette.ListArgs:
		return place(a.Kind, a.Namespace, "("+a.LabelSelector+")")
	case vedette.MetricsArgs:
		return place("Pod", a.Namespace, a.Name)
	case vedette.DiscoverArgs:
		return ""
	}
	if t, ok := args.(interface{ Aim() vedette.Target }); ok {
		target := t.Aim()
		return place(target.Kind, target.Namespace, target.Name)
	}
	return ""
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
func (y *diary) run(ctx context.Context) error {
	if n, err := y.book.LoseOperations(ctx, y.cfg.Server, "the server that sent this ended before the outcome came", time.Now()); err != nil {
		y.log.Warn("operations of the last run could not be marked as lost", "error", err)
	} else if n > 0 {
		y.log.Info("operations of the last run are lost", "count", n)
	}
	purge := time.NewTicker(10 * time.Minute)
	defer purge.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-y.ready:
			y.note(ctx)
		case <-purge.C:
			y.purge(ctx)
		}
	}
}

// note writes what has ended. Where the database is away it waits a little and
// tries again, and what ends meanwhile joins it.
func (y *diary) note(ctx context.Context) {
	y.mu.Lock()
	ends := y.ends
	y.ends = nil
	y.mu.Unlock()
	if len(ends) == 0 {
		return
	}
	err := y.book.EndOperations(ctx, ends)
	if err == nil {
		return
	}
	y.log.Warn("ends of operations are not in the history yet; tried again", "count", len(ends), "error", err)
	if vedette.KindOf(err) != vedette.Unavailable {
		return
	}
	y.mu.Lock()
	y.ends = append(ends, y.ends...)
	y.ends = y.ends[max(0, len(y.ends)-mostEnds):]
	y.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
		select {
		case y.ready <- struct{}{}:
		default:
		}
	}
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
