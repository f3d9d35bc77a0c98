package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// executeMeasured executes an operation. The executor calls it.
func (a *Agent) executeMeasured(ctx context.Context, op vedette.Operation) vedette.Outcome {
	start := time.Now()
	out := a.execute(ctx, op)
	verb := vedette.Verb("unknown") // of a newer server
	if op.Args != nil {
		verb = op.Args.Verb()
	}
	a.cfg.Metrics.OperationEnded(verb, out.State, time.Since(start))
	return out
}

// execute executes an operation in the cluster of its account.
func (a *Agent) execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	account := a.accounts[op.Account]
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
	cfg.CoveredByFeed = a.covers
	var err error
	cfg.Redactor, err = a.newRedactor(a.agent.serverSettings())
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
