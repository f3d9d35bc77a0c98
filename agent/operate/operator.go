package operate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/artifact"
	"github.com/vedette-io/vedette/agent/redact"
)

// Config is how operations are carried out. The zero value works.
type Config struct {
	// Timeout is how long an operation without a deadline may take; 30 s.
	Timeout time.Duration
	// ServerSideApply says when manifests are merged by the API server.
	ServerSideApply apply.Mode
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
	salts   artifact.SaltCache
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

// Execute carries out an operation. It returns at the operation's deadline, or when ctx ends, at
// the latest. A Stream in the outcome stays open until ctx ends.
func (o *Operator) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	return newRun(o, op).outcome(ctx)
}
