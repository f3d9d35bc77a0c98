package request

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/redact"
)

// Config is how requests are sent. The zero value is valid.
type Config struct {
	// Redactor redacts the objects that leave the agent. The default removes the data of Secrets and managedFields.
	Redactor *redact.Redactor
	// Log gets a line for each request to the API server, at level debug; nil discards it.
	Log *slog.Logger
	// Retry determines which failed requests are retried.
	Retry RetryPolicy
	// InitialBackoff and MaxBackoff limit the delay before a retry, which doubles each time;
	// default 100 ms and 3 s. Retry.Backoff replaces them.
	InitialBackoff, MaxBackoff time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.InitialBackoff <= 0 {
		c.InitialBackoff = 100 * time.Millisecond
	}
	if c.MaxBackoff <= 0 {
		c.MaxBackoff = 3 * time.Second
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

// Client is one cluster, with what its operations share. It is safe for concurrent use.
type Client struct {
	cluster *kube.Cluster
	cfg     Config
	kinds   kindCache
	// redactor is Config.Redactor until SetRedactor replaces it.
	redactor atomic.Pointer[redact.Redactor]
}

// NewClient returns a Client. It sends no requests.
func NewClient(cluster *kube.Cluster, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cluster: cluster, cfg: cfg}
	c.redactor.Store(cfg.Redactor)
	return c, nil
}

// SetRedactor replaces the redactor, for example because the server requests other projections.
// Operations in progress may use either one.
func (c *Client) SetRedactor(r *redact.Redactor) { c.redactor.Store(r) }

// Redactor returns the present redactor.
func (c *Client) Redactor() *redact.Redactor { return c.redactor.Load() }

// Host returns the address of the API server, for messages.
func (c *Client) Host() string { return c.cluster.Host() }
