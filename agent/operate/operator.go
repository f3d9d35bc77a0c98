package operate

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/redact"
)

// Config is how operations are carried out. The zero value works.
type Config struct {
	// Timeout is how long an operation without a deadline may take; 30 s.
	Timeout time.Duration
	// ServerSideApply says when manifests are merged by the API server.
	ServerSideApply ApplyMode
	// Manager is the field manager of applies, "kubectl" where empty. With another
	// name than kubectl's, fields that kubectl applied stay kubectl's, and remain
	// when a manifest drops them.
	Manager string
	// FieldValidation is what becomes of fields of manifests that the API server does not
	// know, strict where empty, as with kubectl.
	FieldValidation vedette.FieldValidation
	// Redactor is what objects pass on their way out; nil for one that cuts no
	// more than Secrets and managedFields.
	Redactor *redact.Redactor
	// CoveredByFeed reports whether the account's feeds would tell an object, as
	// watch.Watcher.Wants does; only then is it told as Fresh. Nil means all.
	// It is called by many at once.
	CoveredByFeed func(vedette.Resource, *vedette.Object) bool
	// Retry are which failed requests are made again.
	Retry RetryPolicy
	// InitialBackoff and MaxBackoff bound the pause before a request is made again,
	// which doubles, where Retries name none; 100 ms, 3 s.
	InitialBackoff, MaxBackoff time.Duration
	// MaxConflictAttempts bounds how often a conflict is answered by reading again; 5.
	MaxConflictAttempts int
	// SchemaTTL is how long a schema is kept for the next client-side apply; 2 min.
	SchemaTTL time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Manager == "" {
		c.Manager = kubectlManager
	}
	if c.FieldValidation == vedette.FieldValidationDefault {
		c.FieldValidation = vedette.FieldValidationStrict
	}
	if c.InitialBackoff <= 0 {
		c.InitialBackoff = 100 * time.Millisecond
	}
	if c.MaxBackoff <= 0 {
		c.MaxBackoff = 3 * time.Second
	}
	if c.MaxConflictAttempts <= 0 {
		c.MaxConflictAttempts = 5
	}
	if c.SchemaTTL <= 0 {
		c.SchemaTTL = 2 * time.Minute
	}
	if c.Redactor != nil {
		return c, nil
	}
	var err error
	c.Redactor, err = redact.New(redact.Config{}, nil, vedette.HeaderAnnotations)
	return c, err
}

// Operator carries out operations in one cluster. It is safe for use by many at
// once.
type Operator struct {
	cluster *kube.Cluster
	cfg     Config
	kinds   kindCache
	schemas schemaCache
	salts   saltCache
	// redactor is Config.Redactor, or what SetRedactor put in its place.
	redactor atomic.Pointer[redact.Redactor]
}

// New makes an Operator. It asks the cluster for nothing yet.
func New(cluster *kube.Cluster, cfg Config) (*Operator, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := cfg.ServerSideApply.Validate(); err != nil {
		return nil, err
	}
	if err := checkFieldValidation(cfg.FieldValidation); err != nil {
		return nil, err
	}
	o := &Operator{cluster: cluster, cfg: cfg}
	o.schemas.ttl = cfg.SchemaTTL
	o.redactor.Store(cfg.Redactor)
	return o, nil
}

// SetRedactor changes what objects pass on their way out, as when a server asks
// for other fields. Operations under way may use either.
func (o *Operator) SetRedactor(r *redact.Redactor) { o.redactor.Store(r) }

// Execute carries out an operation. It returns when the operation's deadline comes, or
// ctx is over, at the latest. A Stream in the outcome lives on within ctx.
func (o *Operator) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	ctx, collector := withWarningCollector(ctx)
	out := o.toOutcome(op, o.execute(ctx, op))
	out.Warnings = collector.list()
	return out
}

func (o *Operator) execute(ctx context.Context, op vedette.Operation) result {
	if a, ok := op.Args.(vedette.LogsArgs); ok {
		return o.logs(ctx, o.deadline(op), a)
	}
	ctx, cancel := context.WithDeadline(ctx, o.deadline(op))
	defer cancel()
	if op.DryRun {
		ctx = withDryRun(ctx)
	}
	ctx, tracker := withLostTracker(ctx)
	r := o.executeVerb(ctx, op.Args)
	r.err = tracker.finalError(r.err)
	return r
}

func (o *Operator) deadline(op vedette.Operation) time.Time {
	if op.Deadline.IsZero() {
		return time.Now().Add(o.cfg.Timeout)
	}
	return op.Deadline
}

// result is what a verb comes to: an outcome in the making, or an error.
type result struct {
	vedette.Outcome
	err error
}

func errorResult(err error) result { return result{err: err} }

func (o *Operator) executeVerb(ctx context.Context, args vedette.Args) result {
	switch a := args.(type) {
	case vedette.GetArgs:
		return o.get(ctx, a)
	case vedette.ListArgs:
		return o.list(ctx, a)
	case vedette.ApplyArgs:
		return o.apply(ctx, a)
	case vedette.PatchArgs:
		return o.patch(ctx, a)
	case vedette.DeleteArgs:
		a.NoWait = a.NoWait || isDryRun(ctx)
		return o.delete(ctx, a)
	case vedette.PruneArgs:
		return o.prune(ctx, a)
	case vedette.ScaleArgs:
		return o.scale(ctx, a)
	case vedette.RestartArgs:
		return o.restart(ctx, a.Target)
	case vedette.PauseArgs:
		return o.pause(ctx, a.Target)
	case vedette.ResumeArgs:
		return o.resume(ctx, a.Target)
	case vedette.UndoArgs:
		return o.undo(ctx, a)
	case vedette.HistoryArgs:
		return o.history(ctx, a.Target)
	case vedette.StatusArgs:
		return o.status(ctx, a.Target)
	case vedette.EventsArgs:
		return o.events(ctx, a.Target)
	case vedette.MetricsArgs:
		return o.metrics(ctx, a)
	case vedette.DiscoverArgs:
		return o.discover(ctx)
	case vedette.RecacheArgs:
		return o.recache(ctx, a.Target)
	case vedette.VersionArgs:
		return o.version(ctx, a)
	}
	return errorResult(&statusError{Status: http.StatusBadRequest, Reason: vedette.ReasonUnknownToAgent, Message: "this agent knows no operation " + quotedVerb(args)})
}

func quotedVerb(args vedette.Args) string {
	if args == nil {
		return "without arguments"
	}
	return fmt.Sprintf("%q", args.Verb())
}

// toOutcome closes a result.
func (o *Operator) toOutcome(op vedette.Operation, r result) vedette.Outcome {
	out := r.Outcome
	if r.err != nil {
		out = errorOutcome(r.err)
		out.Keys, out.UIDs, out.Objects = r.Keys, r.UIDs, r.Objects // what was done before it failed
	} else {
		out.State = vedette.Done
		if out.Status == 0 {
			out.Status = http.StatusOK
		}
	}
	out.ID = op.ID
	out.Message = strings.ToValidUTF8(out.Message, "\uFFFD") // the wire takes no other text
	if op.DryRun {
		return cleanDryRunOutcome(out)
	}
	return out
}
