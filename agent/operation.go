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
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/tracing"
)

// executeMeasured executes an operation. The executor calls it.
func (a *Agent) executeMeasured(ctx context.Context, op vedette.Operation) vedette.Outcome {
	start := time.Now()
	out := a.execute(ctx, op)
	a.cfg.Metrics.OperationEnded(verbOf(op), out.State, time.Since(start))
	return out
}

// execute executes an operation, and logs its end. Log lines of the operation contain its id, and that
// of the request that caused it.
func (a *Agent) execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	ctx = requestid.With(ctx, op.RequestID)
	ctx = logging.WithAttrs(ctx, slog.String("operation", string(op.ID)))
	ctx, span := a.startSpan(ctx, op)
	defer span.End()
	started, level := time.Now(), slog.LevelInfo
	out := a.executeInCluster(ctx, op)
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

// executeInCluster executes an operation in the cluster of its account.
func (a *Agent) executeInCluster(ctx context.Context, op vedette.Operation) vedette.Outcome {
	account := a.accounts.get(op.Account)
	if account == nil {
		return failedOutcome(op, http.StatusNotFound, "NotFound",
			"agent "+string(a.cfg.Uplink.Agent)+" has no account "+string(op.Account)+" in its configuration")
	}
	operator, err := account.currentOperator()
	if operator == nil {
		message := "the agent has not reached the cluster of account " + string(op.Account) + " yet"
		if err != nil {
			message += ": " + err.Error()
		}
		return failedOutcome(op, http.StatusServiceUnavailable, "ServiceUnavailable", message)
	}
	return operator.Execute(ctx, op)
}

func failedOutcome(op vedette.Operation, status int, reason, message string) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: status, Reason: reason, Message: message}
}

// initOperator creates the account's operator. It also works while another agent reports
// the account.
func (a *account) initOperator(cluster *kube.Cluster) error {
	cfg := a.agent.cfg.Operate
	cfg.CoveredByFeed, cfg.Log = a.covers, a.log
	var err error
	cfg.Redactor, err = a.agent.redactorFor(a.agent.serverSettings())
	if err != nil {
		return err
	}
	operator, err := operate.New(cluster, cfg)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.operator, a.cluster = operator, cluster
	return nil
}

// covers reports whether a feed of this agent reports an object. It returns false while
// another agent reports the account.
func (a *account) covers(r vedette.Resource, o *vedette.Object) bool {
	a.mu.Lock()
	w := a.watcher
	a.mu.Unlock()
	return w != nil && w.Covers(r, o)
}

// setWatcher makes operations report objects in the same form as the feeds of a watcher.
func (a *account) setWatcher(w *watch.Watcher, feeds *feedAnnouncements, r *redact.Redactor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watcher, a.feeds = w, feeds
	a.operator.SetRedactor(r)
}

// currentOperator returns the operator, or nil and the reason why the cluster cannot be
// reached.
func (a *account) currentOperator() (*operate.Operator, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.operator, a.err
}
