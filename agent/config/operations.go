package config

// Retries is how often a failed request of an operation is made again to an API
// server. What throttling, an overloaded API server or the network failed is
// made again in any case, unless it could take effect twice; what is the
// operation's own fault never is.
type Retries struct {
	// Make failed requests again.
	Enabled bool `config:"enabled" default:"true"`
	// How often, at the most. By default until the operation's deadline, and 3 times what only retryAnyError or retryableErrors ask for.
	MaxRetries *int `config:"maxRetries"`
	// Milliseconds in between. By default 100, doubled each time up to 3000.
	BackOffMs *int `config:"backOffMs"`
	// Whatever the cluster's failure is.
	RetryAnyError bool `config:"retryAnyError" default:"false"`
	// Failures of the cluster whose text holds one of these, in any case.
	RetryableErrors []string `config:"retryableErrors" default:"timeout,deadline exceeded"`
}

// ResponseRetries is how often the result of an operation is sent again.
type ResponseRetries struct {
	// Send results again.
	Enabled bool `config:"enabled" default:"true"`
	// How often.
	MaxRetries int `config:"maxRetries" default:"3"`
	// Milliseconds in between.
	BackOffMs int `config:"backOffMs" default:"3000"`
}

// ClouddriverRetries are ResponseRetries under their older name.
type ClouddriverRetries struct {
	// Send results again.
	Enabled bool `config:"enabled" default:"true"`
	// How often.
	MaxRetries int `config:"maxRetries" default:"3"`
	// Milliseconds in between.
	BackOffMs int `config:"backOffMs" default:"3000"`
	// Whatever the error is.
	RetryAnyError bool `config:"retryAnyError" default:"true"`
	// Else only where the error's text holds one of these.
	RetryableErrors []string `config:"retryableErrors"`
}

// ServerSideApply says when manifests are applied by the API server. Each value
// is always, never, or allowed, which leaves it to the manifest's annotations.
type ServerSideApply struct {
	// Apply on the API server.
	Enabled string `config:"enabled" default:"allowed"`
	// Delete managed fields, so that the agent is the only manager.
	ClearManagedFields string `config:"clearManagedFields" default:"allowed"`
	// Write the API server's defaults into manifests: the predecessor needed that to remove fields, which works without.
	ManifestDefaults string `config:"manifestDefaults,unused" default:"allowed"`
	// Other values for some kinds.
	Kinds []ServerSideApplyKind `config:"kinds"`
}

// ServerSideApplyKind is ServerSideApply for one kind.
type ServerSideApplyKind struct {
	// The kind, as in a manifest.
	Kind string `config:"kind"`
	// Apply on the API server.
	Enabled string `config:"enabled" default:"allowed"`
	// Delete managed fields, so that the agent is the only manager.
	ClearManagedFields string `config:"clearManagedFields" default:"allowed"`
	// Write the API server's defaults into manifests: see above.
	ManifestDefaults string `config:"manifestDefaults,unused" default:"allowed"`
}

// DynamicAccounts are the predecessor's settings for accounts that the server
// takes from elsewhere. Its samples put them into the server's file.
type DynamicAccounts struct {
	// Accept dynamic accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Attempts at an account that failed.
	MaxRetries int `config:"maxRetries" default:"3"`
	// Seconds in between.
	RetryFrequencySeconds int `config:"retryFrequencySeconds" default:"5"`
	Interceptor           struct {
		// Take accounts that are added through Gate.
		Enabled bool `config:"enabled" default:"true"`
	} `config:"interceptor"`
	// Accounts sent at once.
	ScanBatchSize int `config:"scanBatchSize" default:"572"`
	// Seconds between two scans.
	ScanFrequencySeconds int `config:"scanFrequencySeconds" default:"120"`
	// Regular expressions of names in the accounts table.
	NamePatterns []string `config:"namePatterns"`
	// Regular expressions of names in any credential source.
	CredentialScanNamePatterns []string `config:"credentialScanNamePatterns"`
}

// Local is the predecessor's undocumented local mode.
type Local struct {
	// Serve locally.
	Enabled bool `config:"enabled" default:"false"`
	// Gather events before serving them.
	Aggregate bool `config:"aggregate" default:"false"`
	// Port to serve on.
	Port int `config:"port" default:"0"`
}
