package config

import (
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/authorize"
)

// Fiat configures Spinnaker's authorization service.
type Fiat struct {
	// Ask Fiat what each user may do. Without it everyone may read, and an account with permissions takes changes only from requests that name it in X-SPINNAKER-ACCOUNTS.
	Enabled bool `config:"enabled" default:"false"`
	// Address of Fiat, such as http://spin-fiat:7003.
	BaseURL string `config:"baseUrl"`
	// Where Fiat does not answer, let a request use the accounts that it names in X-SPINNAKER-ACCOUNTS, and all applications. Otherwise it is denied.
	LegacyFallback bool      `config:"legacyFallback" default:"false"`
	Cache          FiatCache `config:"cache"`
	Retry          FiatRetry `config:"retry"`

	// Host, as Halyard writes it: baseUrl counts.
	Host string `config:"host,unused"`
	// Port, as Halyard writes it: baseUrl counts.
	Port int `config:"port,unused"`
	// Reread the address.
	Refreshable bool `config:"refreshable,unused"`
	// HTTP client's patience in milliseconds: retry counts.
	ConnectTimeoutMs int `config:"connectTimeoutMs,unused"`
	// HTTP client's patience in milliseconds: retry counts.
	ReadTimeoutMs int `config:"readTimeoutMs,unused"`
	// Spring's authorities.
	GrantedAuthorities configfile.Ignored `config:"grantedAuthorities,unused"`
}

// FiatCache configures how long Fiat's answers are cached.
type FiatCache struct {
	// Users whose permissions are kept at most.
	MaxEntries int `config:"maxEntries" default:"1000"`
	// Seconds for which they count. A user whose roles change has the old ones for so long.
	ExpiresAfterWriteSeconds int `config:"expiresAfterWriteSeconds" default:"20"`
}

// FiatRetry configures retries of requests to Fiat.
type FiatRetry struct {
	// Milliseconds after which it is given up, and the request denied.
	MaxBackoffMillis int `config:"maxBackoffMillis" default:"10000"`
	// Milliseconds to wait after the first failure.
	InitialBackoffMillis int `config:"initialBackoffMillis" default:"500"`
	// Factor by which each further wait is longer.
	RetryMultiplier float64 `config:"retryMultiplier" default:"1.5"`
}

// AuthorizeConfig returns the configuration of package authorize; nil if Fiat is disabled.
func (f Fiat) AuthorizeConfig() *authorize.FiatConfig {
	if !f.Enabled {
		return nil
	}
	return &authorize.FiatConfig{
		BaseURL:              f.BaseURL,
		CacheTTL:             time.Duration(f.Cache.ExpiresAfterWriteSeconds) * time.Second,
		CacheSize:            f.Cache.MaxEntries,
		RetryInitialInterval: time.Duration(f.Retry.InitialBackoffMillis) * time.Millisecond,
		RetryMultiplier:      f.Retry.RetryMultiplier,
		RetryMaxElapsed:      time.Duration(f.Retry.MaxBackoffMillis) * time.Millisecond,
		LegacyFallback:       f.LegacyFallback,
	}
}

func (c *Config) checkFiat(f Fiat) {
	const prefix = "services.fiat."
	for key, n := range map[string]int{
		"cache.maxEntries": f.Cache.MaxEntries, "cache.expiresAfterWriteSeconds": f.Cache.ExpiresAfterWriteSeconds,
		"retry.maxBackoffMillis": f.Retry.MaxBackoffMillis, "retry.initialBackoffMillis": f.Retry.InitialBackoffMillis,
	} {
		if n < 1 || n > 1<<31-1 {
			c.addProblem(prefix+key, "%q must be 1 or more, got %d", prefix+key, n)
		}
	}
	if f.Retry.RetryMultiplier < 1 {
		c.addProblem(prefix+"retry.retryMultiplier", "%q must be 1 or more, got %g", prefix+"retry.retryMultiplier", f.Retry.RetryMultiplier)
	}
	switch fiat := f.AuthorizeConfig(); {
	case f.Enabled && f.BaseURL == "":
		c.addProblem(prefix+"enabled", "%q is true, but %q is missing", prefix+"enabled", prefix+"baseUrl")
	case f.Enabled:
		if err := fiat.Validate(); err != nil {
			c.addProblem(prefix+"baseUrl", "%q: %s", prefix+"baseUrl", err)
		}
	case f.BaseURL != "":
		c.addNotice(prefix+"baseUrl", "services.fiat.baseUrl is set, but services.fiat.enabled is not true: everyone may read, and only the header X-SPINNAKER-ACCOUNTS protects accounts with permissions")
	}
}
