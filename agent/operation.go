package agent

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/tracing"
)

// The memory of the operations of an agent in bytes: of all, and of one account. What an operation needs at first is
// in a part of its own, so that the large operations of a few accounts leave others room for small ones.
const (
	operationMemory        = 64 << 20
	accountOperationMemory = 40 << 20
	maxMemoryWait          = 10 * time.Second // of an operation, for others to release theirs

	smallOperationMemory        = 16 << 20
	accountSmallOperationMemory = 4 << 20
	maxSmallOperation           = 1 << 20
)

func newOperationMemory() *fair.Split {
	return fair.NewSplit(fair.Config{Capacity: smallOperationMemory, Share: accountSmallOperationMemory},
		fair.Config{Capacity: operationMemory, Share: accountOperationMemory, Wait: maxMemoryWait}, maxSmallOperation)
}

// executeMeasured executes an operation. The executor calls it.
func (a *Agent) executeMeasured(ctx context.Context, op vedette.Operation, c *executor.Control) vedette.Outcome {
	start := time.Now()
	out := a.execute(ctx, op, c)
	a.cfg.Metrics.OperationEnded(verbOf(op), out.State, time.Since(start))
	return out
}

// execute executes an operation, and logs its end. Log lines of the operation contain its id, and that
// of the request that caused it.
func (a *Agent) execute(ctx context.Context, op vedette.Operation, c *executor.Control) vedette.Outcome {
	ctx = requestid.With(ctx, op.RequestID)
	ctx = logging.WithAttrs(ctx, slog.String("operation", string(op.ID)))
	ctx, span := a.startSpan(ctx, op)
	defer span.End()
	started, level := time.Now(), slog.LevelInfo
	out := a.executeInCluster(ctx, op, c)
	if out.State != vedette.Done {
		tracing.SetFailed(span, out.Reason)
	}
	if !op.Changes() {
		level = slog.LevelDebug
	}
	a.log.Log(ctx, level, "operation ended", "account", op.Account, "verb", verbOf(op), "state", out.State, "status", out.Status,
		"reason", out.Reason, "duration", time.Since(started))
	return out
}

// startSpan starts the span of an operation, if the server traces it.
func (a *Agent) startSpan(ctx context.Context, op vedette.Operation) (context.Context, trace.Span) {
	ctx, traced := tracing.WithParent(ctx, op.TraceParent)
	if a.cfg.Tracing == nil || !traced {
		return ctx, noop.Span{}
	}
	return tracing.StartBy(ctx, a.cfg.Tracing, "execute "+string(verbOf(op)), attribute.String("vedette.operation", string(op.ID)),
		attribute.String("vedette.account", string(op.Account)))
}

func verbOf(op vedette.Operation) vedette.Verb {
	if op.Args == nil {
		return "unknown" // of a newer server
	}
	return op.Args.Verb()
}

func (a *Agent) executeInCluster(ctx context.Context, op vedette.Operation, c *executor.Control) vedette.Outcome {
	account := a.accounts.get(op.Account)
	if account == nil {
		return failedOutcome(op, http.StatusNotFound, "NotFound",
			"agent "+string(a.cfg.Uplink.Agent)+" has no account "+string(op.Account)+" in its configuration")
	}
	operator, cluster, err := account.currentOperator()
	switch {
	case operator == nil:
		message := "the agent has not reached the cluster of account " + string(op.Account) + " yet"
		if err != nil {
			message += ": " + err.Error()
		}
		return failedOutcome(op, http.StatusServiceUnavailable, "ServiceUnavailable", message)
	case op.Cluster == vedette.Cluster{}:
		return failedOutcome(op, http.StatusServiceUnavailable, "ServiceUnavailable", "the agent had not reached the cluster of account "+
			string(op.Account)+" when the operation arrived, so it does not know for which cluster it was accepted. Nothing was done: try again")
	case !op.Cluster.Same(cluster):
		a.log.WarnContext(ctx, "operation rejected: the account has another cluster than when the operation was accepted", "account", op.Account,
			"expected", op.Cluster.String(), "found", cluster.String())
		return failedOutcome(op, http.StatusConflict, vedette.ReasonAnotherCluster, "account "+string(op.Account)+
			" has another cluster in the agent than when the operation was accepted. Nothing was done. The agent's log names both clusters")
	}
	out := operator.ExecuteControlled(ctx, op, request.Control{MayChange: c.MayChange, Wait: c.Wait, Memory: c.Memory})
	if w, kinds := account.currentWatcher(), cachedKinds(&out); w != nil && w.IsBeginningAnew(kinds) {
		c.Wait(ctx, func(ctx context.Context) { awaitBegin(ctx, w, kinds, op.Deadline) })
	}
	return out
}

// maxBeginWait is for how long an outcome waits for the beginning of a snapshot: the server answers within milliseconds, unless it or its
// database is about to fail.
const maxBeginWait = 2 * time.Second

// awaitBegin waits while feeds of some kinds begin to be read anew, as after their cluster was restored. With the beginning the server
// forgets what operations have found out, because that may be about the state before. What this one has found out is newer, and may be
// missing in the list, which would take it back. Half of the time that is left until the deadline is for the outcome itself, because one
// that arrives too late is lost.
func awaitBegin(ctx context.Context, w *watch.Watcher, kinds map[vedette.Kind]bool, deadline time.Time) {
	limit := maxBeginWait
	if !deadline.IsZero() {
		limit = min(limit, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w.AwaitBegin(ctx, kinds)
}

// cachedKinds returns the kinds of the objects of which an outcome tells the store.
func cachedKinds(out *vedette.Outcome) map[vedette.Kind]bool {
	kinds := map[vedette.Kind]bool{}
	for _, key := range out.Keys {
		kinds[key.Kind] = true
	}
	if o := out.CacheObject; o != nil {
		kinds[o.Key.Kind] = true
	}
	if out.Absent != nil {
		kinds[out.Absent.Key.Kind] = true
	}
	return kinds
}

// boundExecutor executes each operation in the cluster that it was accepted for, or not at all.
type boundExecutor struct {
	*executor.Executor
	accounts *accountSet
}

// Submit starts an operation that the uplink has received.
func (x boundExecutor) Submit(op vedette.Operation, d *uplink.Delivery) {
	x.Executor.Submit(x.bind(op), d)
}

// bind names the cluster of an operation of a server of an older release, which does not. It is the one that
// the account has now: the account may get another one while the operation waits for a worker.
func (x boundExecutor) bind(op vedette.Operation) vedette.Operation {
	if account := x.accounts.get(op.Account); account != nil && op.Cluster == (vedette.Cluster{}) {
		_, op.Cluster, _ = account.currentOperator()
	}
	return op
}

func failedOutcome(op vedette.Operation, status int, reason, message string) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: status, Reason: reason, Message: message}
}

// initOperator creates the account's operator for the cluster that was identified. It also works while
// another agent reports the account.
func (a *account) initOperator(cluster *kube.Cluster, identity vedette.Cluster) error {
	cfg := a.agent.cfg.Operate
	cfg.Coverage, cfg.Requests.Log = a.coverage, a.log
	var err error
	cfg.Requests.Redactor, err = a.agent.redactorFor(a.agent.serverSettings())
	if err != nil {
		return err
	}
	operator, err := operate.New(cluster, cfg)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.operator = operator
	a.operatorOf = identity
	a.cluster = cluster
	return nil
}

// coverage returns whether a feed of the account reports an object. While this agent does not report the account, another one may, or
// this one is about to begin: only the server knows which feeds there are.
func (a *account) coverage(r vedette.Resource, o *vedette.Object) operate.Coverage {
	w := a.currentWatcher()
	if w != nil && w.Covers(r, o) {
		return operate.Reported
	}
	var isReported bool
	if w != nil && w.KnowsFeeds() {
		isReported = w.Reports(r.Kind, o)
	} else {
		isReported = a.selection(a.agent.serverSettings()).Selects(r, o)
	}
	if isReported {
		return operate.ReportedElsewhere
	}
	return operate.NotReported
}

// selection returns what the account watches.
func (a *account) selection(settings uplink.ServerSettings) watch.Selection {
	s := a.cfg.Selection
	s.DefaultKinds = settings.Kinds
	return s
}

// currentWatcher returns the watcher of the account; nil while this agent does not report the account.
func (a *account) currentWatcher() *watch.Watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watcher
}

// stopWatching forgets the watcher, which has stopped.
func (a *account) stopWatching() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watcher, a.feeds = nil, nil
}

// setWatcher makes operations report objects in the same form as the feeds of a watcher.
func (a *account) setWatcher(w *watch.Watcher, feeds *feedAnnouncements, r *redact.Redactor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watcher, a.feeds = w, feeds
	a.operator.SetRedactor(r)
}

// currentOperator returns the operator and the identity of its cluster, or nil and the reason why the
// cluster cannot be reached.
func (a *account) currentOperator() (*operate.Operator, vedette.Cluster, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.operator, a.operatorOf, a.err
}
