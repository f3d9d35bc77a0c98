package operate

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/operate/versioning"
	"github.com/vedette-io/vedette/agent/redact"
)

// Coverage says whether the feeds of an account report an object.
type Coverage int

// Coverages.
const (
	NotReported Coverage = iota
	// Reported in the form that operations have it in.
	Reported
	// ReportedElsewhere means by another agent, or as another version of its kind. The form may differ.
	ReportedElsewhere
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
	// Coverage returns whether the account's feeds report an object. Only such objects are
	// stored from outcomes, because nothing would report the deletion of others. Nil means that
	// all are reported. It must be safe for concurrent use.
	Coverage func(vedette.Resource, *vedette.Object) Coverage
	// Requests is how requests are sent.
	Requests request.Config
}

func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Manager == "" {
		c.Manager = apply.KubectlManager
	}
	if c.FieldValidation == vedette.FieldValidationDefault {
		c.FieldValidation = vedette.FieldValidationStrict
	}
	return c
}

// Operator executes operations in one cluster. It is safe for concurrent use.
type Operator struct {
	client  *request.Client
	cfg     Config
	schemas schemaCache
	salts   versioning.SaltCache
}

// New returns an Operator. It sends no requests.
func New(cluster *kube.Cluster, cfg Config) (*Operator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.ServerSideApply.Validate(); err != nil {
		return nil, err
	}
	if err := checkFieldValidation(cfg.FieldValidation); err != nil {
		return nil, err
	}
	client, err := request.NewClient(cluster, cfg.Requests)
	if err != nil {
		return nil, err
	}
	return &Operator{client: client, cfg: cfg}, nil
}

// SetRedactor replaces the redactor, for example because the server requests other projections.
// Operations in progress may use either one.
func (o *Operator) SetRedactor(r *redact.Redactor) { o.client.SetRedactor(r) }

// Execute executes an operation. It returns at the operation's deadline, or when ctx ends, at
// the latest. A Stream in the outcome stays open until ctx ends.
func (o *Operator) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	return o.ExecuteControlled(ctx, op, request.Control{})
}

// ExecuteControlled is Execute for an executor, which the operation asks for what it needs.
func (o *Operator) ExecuteControlled(ctx context.Context, op vedette.Operation, c request.Control) vedette.Outcome {
	return newRun(o, op, c).outcome(ctx)
}
