package config

import (
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/authorize"
)

// Fiat is Spinnaker's service for users' permissions.
type Fiat struct {
	// Ask Fiat for the permissions of each user. If false, everyone may read, and an account with permissions
	// accepts changes only from requests that name it in X-SPINNAKER-ACCOUNTS.
	Enabled bool `config:"enabled" default:"false"`
	// URL of Fiat, for example http://spin-fiat:7003. Required if enabled.
	BaseURL string `config:"baseUrl"`
	// If Fiat does not answer, allow requests to use the accounts that they name in X-SPINNAKER-ACCOUNTS, and
	// all applications. If false, they are denied.
	LegacyFallback bool `config:"legacyFallback" default:"false"`
	// Cache of users' permissions.
	Cache FiatCache `config:"cache"`
	// Retries of requests to Fiat.
	Retry FiatRetry `config:"retry"`

	// baseUrl is used instead.
	Host string `config:"host,ignored"`
	// baseUrl is used instead.
	Port int `config:"port,ignored"`
	// A new address needs a restart.
	Refreshable bool `config:"refreshable,ignored"`
	// services.fiat.retry limits the time instead.
	ConnectTimeoutMs int `config:"connectTimeoutMs,ignored"`
	// services.fiat.retry limits the time instead.
	ReadTimeoutMs int `config:"readTimeoutMs,ignored"`
	// Belongs to Spring Security, which the server does not use.
	GrantedAuthorities configfile.Ignored `config:"grantedAuthorities,ignored"`
}

// FiatCache configures the cache of users' permissions.
type FiatCache struct {
	// Maximum number of users whose permissions are cached.
	MaxEntries int `config:"maxEntries" default:"1000"`
	// Time for which permissions are cached, in seconds. A user whose roles change keeps the old permissions for this time.
	ExpiresAfterWriteSeconds int `config:"expiresAfterWriteSeconds" default:"20"`
}

// FiatRetry configures retries of requests to Fiat.
type FiatRetry struct {
	// Time after which the server stops trying and denies the request, in milliseconds.
	MaxBackoffMillis int `config:"maxBackoffMillis" default:"10000"`
	// Pause after the first failure, in milliseconds.
	InitialBackoffMillis int `config:"initialBackoffMillis" default:"500"`
	// Factor between two pauses.
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
