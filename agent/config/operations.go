package config

// Retries configures how often a failed request of an operation to an API server
// is tried again.
type Retries struct {
	// Retry failed requests. If false, no request is retried.
	Enabled bool `config:"enabled" default:"true"`
	// Maximum number of retries. Default: no limit until the operation's deadline, and 3 for failures that only
	// retryAnyError or retryableErrors select.
	MaxRetries *int `config:"maxRetries"`
	// Pause between two attempts, in milliseconds. Default: 100, doubled each time up to 3000.
	BackOffMs *int `config:"backOffMs"`
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
type ServerSideApply struct {
	// `always`, `never` or `allowed`: apply server-side. With `allowed`, ConfigMaps and Secrets are applied
	// server-side, and other kinds client-side, unless the manifest's annotation `agent-k8s.armory.io/serverside-apply` is true.
	Enabled string `config:"enabled" default:"allowed"`
	// `always`, `never` or `allowed`: remove managed fields, so that the agent is the only manager. With
	// `allowed`, the annotation `agent-k8s.armory.io/ssa-clear-managed-fields` decides.
	ClearManagedFields string `config:"clearManagedFields" default:"allowed"`
	// Removed fields are removed from the object without this help.
	ManifestDefaults string `config:"manifestDefaults,ignored" default:"allowed"`
	// Values for single kinds. They apply if the value above is `allowed`.
	Kinds []ServerSideApplyKind `config:"kinds"`
}

// ServerSideApplyKind is ServerSideApply for one kind.
type ServerSideApplyKind struct {
	// Kind, as in a manifest.
	Kind string `config:"kind"`
	// As serverSideApply.enabled, for this kind.
	Enabled string `config:"enabled" default:"allowed"`
	// As serverSideApply.clearManagedFields, for this kind.
	ClearManagedFields string `config:"clearManagedFields" default:"allowed"`
	// Removed fields are removed from the object without this help.
	ManifestDefaults string `config:"manifestDefaults,ignored" default:"allowed"`
}

// Local configured an undocumented mode of the predecessor.
type Local struct {
	// Serve locally.
	Enabled bool `config:"enabled" default:"false"`
	// Collect events before serving them.
	Aggregate bool `config:"aggregate" default:"false"`
	// Port to serve.
	Port int `config:"port" default:"0"`
}
