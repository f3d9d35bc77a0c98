package operate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/artifact"
	"github.com/vedette-io/vedette/agent/redact"
)

// Config is how operations are executed. The zero value is valid.
type Config struct {
	// Timeout limits an operation without a deadline; default 30 s.
	Timeout time.Duration
	// ServerSideApply determines which manifests the API server merges.
	ServerSideApply apply.Mode
	// Manager is the field manager of applies; default "kubectl". With any other name, fields
	// that kubectl applied stay kubectl's, and remain if the manifest drops them.
	Manager string
	// FieldValidation determines what the API server does with unknown fields of manifests;
	// default strict, as in kubectl.
	FieldValidation vedette.FieldValidation
	// Redactor redacts the objects in outcomes. The default removes the data of Secrets and
	// managedFields.
	Redactor *redact.Redactor
	// CoveredByFeed reports whether the account's feeds report an object. Only such objects are
	// stored from outcomes, because nothing would report the deletion of others. Nil means that
	// all are covered. It must be safe for concurrent use.
	CoveredByFeed func(vedette.Resource, *vedette.Object) bool
	// Log gets a line for each request to the API server, at level debug; nil discards it.
	Log *slog.Logger
	// Retry determines which failed requests are retried.
	Retry RetryPolicy
	// InitialBackoff and MaxBackoff limit the delay before a retry, which doubles each time;
	// default 100 ms and 3 s. Retry.Backoff replaces them.
	InitialBackoff, MaxBackoff time.Duration
	// MaxConflictAttempts limits the attempts to change an object that others change too;
	// default 5.
	MaxConflictAttempts int
	// SchemaTTL is how long a schema is cached for the next client-side apply; default 2 min.
	SchemaTTL time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Manager == "" {
		c.Manager = apply.KubectlManager
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
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Redactor != nil {
		return c, nil
	}
	var err error
	c.Redactor, err = redact.New(redact.Config{}, nil, vedette.HeaderAnnotations)
	return c, err
}

// Operator executes operations in one cluster. It is safe for concurrent use.
type Operator struct {
	cluster *kube.Cluster
	cfg     Config
	kinds   kindCache
	schemas schemaCache
	salts   artifact.SaltCache
	// redactor is Config.Redactor until SetRedactor replaces it.
	redactor atomic.Pointer[redact.Redactor]
}

// New returns an Operator. It sends no requests.
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

// SetRedactor replaces the redactor, for example because the server requests other projections.
// Operations in progress may use either one.
func (o *Operator) SetRedactor(r *redact.Redactor) { o.redactor.Store(r) }

// Execute executes an operation. It returns at the operation's deadline, or when ctx ends, at
// the latest. A Stream in the outcome stays open until ctx ends.
func (o *Operator) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	return o.ExecuteControlled(ctx, op, Control{})
}

// ExecuteControlled is Execute for an executor, which the operation asks for what it needs.
func (o *Operator) ExecuteControlled(ctx context.Context, op vedette.Operation, c Control) vedette.Outcome {
	r := newRun(o, op)
	r.control = c
	return r.outcome(ctx)
}
