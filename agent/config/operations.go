package config

import (
	"time"

	"github.com/vedette-io/vedette/agent/operate/apply"
)

// Retries configures how often a failed request of an operation to an API server
// is tried again.
type Retries struct {
	// Retry failed requests. If false, no request is retried.
	Enabled bool `config:"enabled" default:"true"`
	// Maximum number of retries. Default: no limit until the operation's deadline, and 3 for failures that only
	// retryAnyError or retryableErrors select.
	MaxRetries *int `config:"maxRetries" minimum:"0"`
	// Pause between two attempts, in milliseconds. Default: 100, doubled each time up to 3000.
	Backoff *time.Duration `config:"backOffMs" format:"milliseconds" minimum:"0"`
	// Retry every failure of the cluster.
	RetryAnyError bool `config:"retryAnyError" default:"false"`
	// Retry failures of the cluster whose text contains one of these strings, ignoring case.
	RetryableErrors []string `config:"retryableErrors" default:"timeout,deadline exceeded"`
}

// ResponseRetries configured how often the outcome of an operation was sent
// again.
type ResponseRetries struct {
	// Send outcomes again.
	Enabled bool `config:"enabled" default:"true"`
	// Maximum number of retries.
	MaxRetries int `config:"maxRetries" default:"3"`
	// Pause between two attempts, in milliseconds.
	BackOffMs int `config:"backOffMs" default:"3000"`
}

// ClouddriverRetries is an older name of ResponseRetries.
type ClouddriverRetries struct {
	// Send outcomes again.
	Enabled bool `config:"enabled" default:"true"`
	// Maximum number of retries.
	MaxRetries int `config:"maxRetries" default:"3"`
	// Pause between two attempts, in milliseconds.
	BackOffMs int `config:"backOffMs" default:"3000"`
	// Retry every error.
	RetryAnyError bool `config:"retryAnyError" default:"true"`
	// Retry errors whose text contains one of these strings.
	RetryableErrors []string `config:"retryableErrors"`
}

// ServerSideApply decides which manifests are applied server-side.
type ServerSideApply struct{ apply.Mode }

// Local configured an undocumented mode of the predecessor.
type Local struct {
	// Serve locally.
	Enabled bool `config:"enabled" default:"false"`
	// Collect events before serving them.
	Aggregate bool `config:"aggregate" default:"false"`
	// Port to serve.
	Port int `config:"port" default:"0"`
}
