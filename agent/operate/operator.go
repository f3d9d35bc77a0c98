package operate

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// Config is how operations are carried out. The zero value works.
type Config struct {
	// Timeout is how long an operation without a deadline may take; 30 s.
	Timeout time.Duration
	// ServerSideApply says when manifests are merged by the API server.
	ServerSideApply Mode
	// Manager is the field manager of applies, "kubectl" where empty. With another
	// name than kubectl's, fields that kubectl applied stay kubectl's, and remain
	// when a manifest drops them.
	Manager string
	// Fields is what becomes of fields of manifests that the API server does not
	// know, strict where empty, as with kubectl.
	Fields vedette.FieldValidation
	// Redactor is what objects pass on their way out; nil for one that cuts no
	// more than Secrets and managedFields.
	Redactor *redact.Redactor
	// Wanted reports whether the account's feeds would tell an object, as
	// watch.Watcher.Wants does; only then is it told as Fresh. Nil means all.
	// It is called by many at once.
	Wanted func(vedette.Resource, *vedette.Object) bool
	// Retries are which failed requests are made again.
	Retries Retries
	// FirstRetry and MostRetry bound the pause before a request is made again,
	// which doubles, where Retries name none; 100 ms, 3 s.
	FirstRetry, MostRetry time.Duration
	// Tries bounds how often a conflict is answered by reading again; 5.
	Tries int
	// SchemaIdle is how long a schema is kept for the next client-side apply; 2 min.
	SchemaIdle time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Manager == "" {
		c.Manager = kubectlManager
	}
	if c.Fields == vedette.FieldsByDefault {
		c.Fields = vedette.StrictFields
	}
	if c.FirstRetry <= 0 {
		c.FirstRetry = 100 * time.Millisecond
	}
	if c.MostRetry <= 0 {
		c.MostRetry = 3 * time.Second
	}
	if c.Tries <= 0 {
		c.Tries = 5
	}
	if c.SchemaIdle <= 0 {
		c.SchemaIdle = 2 * time.Minute
	}
	if c.Redactor != nil {
		return c, nil
	}
	var err error
	c.Redactor, err = redact.New(redact.Config{}, nil, vedette.LiftedAnnotations)
	return c, err
}

// Operator carries out operations in one cluster. It is safe for use by many at
// once.
type Operator struct {
	cluster *watch.Cluster
	cfg     Config
	kinds   kinds
	schemas schemas
	salts   salts
	// redactor is Config.Redactor, or what SetRedactor put in its place.
	redactor atomic.Pointer[redact.Redactor]
}

// New makes an Operator. It asks the cluster for nothing yet.
func New(cluster *watch.Cluster, cfg Config) (*Operator, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := cfg.ServerSideApply.Validate(); err != nil {
		return nil, err
	}
	if err := checkFields(cfg.Fields); err != nil {
		return nil, err
	}
	o := &Operator{cluster: cluster, cfg: cfg}
	o.schemas.idle = cfg.SchemaIdle
	o.redactor.Store(cfg.Redactor)
	return o, nil
}

// SetRedactor changes what objects pass on their way out, as when a server asks
// for other fields. Operations under way may use either.
func (o *Operator) SetRedactor(r *redact.Redactor) { o.redactor.Store(r) }

// Do carries out an operation. It returns when the operation's deadline comes, or
// ctx is over, at the latest. A Stream in the outcome lives on within ctx.
func (o *Operator) Do(ctx context.Context, op vedette.Operation) vedette.Outcome {
	ctx, warned := withWarnings(ctx)
	out := o.outcome(op, o.carry(ctx, op))
	out.Warnings = warned.told()
	return out
}

func (o *Operator) carry(ctx context.Context, op vedette.Operation) result {
	if a, ok := op.Args.(vedette.LogsArgs); ok {
		return o.logs(ctx, o.deadline(op), a)
	}
	ctx, cancel := context.WithDeadline(ctx, o.deadline(op))
	defer cancel()
	if op.DryRun {
		ctx = withDryRun(ctx)
	}
	ctx, losses := withLosses(ctx)
	r := o.dispatch(ctx, op.Args)
	r.err = losses.weigh(r.err)
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

func failed(err error) result { return result{err: err} }

func (o *Operator) dispatch(ctx context.Context, args vedette.Args) result {
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
		a.NoWait = a.NoWait || isDry(ctx)
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
	return failed(&refusal{Status: http.StatusBadRequest, Reason: vedette.ReasonUnknownToAgent, Message: "this agent knows no operation " + verbOf(args)})
}

func verbOf(args vedette.Args) string {
	if args == nil {
		return "without arguments"
	}
	return fmt.Sprintf("%q", args.Verb())
}

// outcome closes a result.
func (o *Operator) outcome(op vedette.Operation, r result) vedette.Outcome {
	out := r.Outcome
	if r.err != nil {
		out = endOf(r.err)
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
		return dry(out)
	}
	return out
}
