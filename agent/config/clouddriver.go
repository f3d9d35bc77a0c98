package config

import (
	"crypto/tls"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
)

// Clouddriver is the server and how to reach it. It has the predecessor's name.
type Clouddriver struct {
	// Host and port of the server, or of a gRPC proxy before it.
	GRPC string `config:"grpc" default:"spin-clouddriver-grpc:9091"`
	// Connect without TLS. By default true only while nothing is set below clouddriver.tls.
	Insecure *bool `config:"insecure"`
	// Ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY towards the server.
	NoProxy bool    `config:"noProxy" default:"false"`
	TLS     TLS     `config:"tls"`
	Auth    Auth    `config:"auth"`
	Backoff Backoff `config:"backoff,unused"`
	// Seconds between two signs of life; 0 for what the server asks for.
	KeepAliveHeartbeatSeconds int `config:"keepAliveHeartbeatSeconds,unused" default:"20"`
	// Seconds to wait for the answer to one before the connection counts as lost; 0 for three times the above.
	KeepAliveTimeOutSeconds int `config:"keepAliveTimeOutSeconds,unused" default:"0"`
	// Seconds without an operation after which to connect anew; 0 for never.
	KeepAliveOperationSeconds int `config:"keepAliveOperationSeconds,unused" default:"0"`
	// How results of operations were sent again: they are resumed with the connection now.
	ResponseRetries ResponseRetries `config:"responseRetries,unused"`
	// The predecessor's undocumented twin of responseRetries.
	Retries ClouddriverRetries `config:"retries,unused"`
	// Seconds between attempts to be given an account to cache.
	CacheRetryIntervalSeconds int `config:"cacheRetryIntervalSeconds,unused" default:"0"`
	// Accept accounts that the server sends.
	DynamicAccountsEnabled bool `config:"dynamicAccountsEnabled,unused" default:"true"`
}

// TLS is how the connection to the server is secured.
type TLS struct {
	// Name on the server's certificate, where it differs from the host in clouddriver.grpc.
	ServerName string `config:"serverName"`
	// Accept any certificate of the server.
	InsecureSkipVerify bool `config:"insecureSkipVerify" default:"false"`
	// PEM file with the agent's certificate and its intermediates, for mTLS. It is read again when it changes.
	ClientCertFile string `config:"clientCertFile"`
	// PEM file with the key; by default the key stands in clientCertFile. PKCS#8, PKCS#1 or EC.
	ClientKeyFile string `config:"clientKeyFile"`
	// Password of the key, where it is encrypted PKCS#8.
	ClientKeyFilePassword configfile.Secret `config:"clientKeyFilePassword,alias=clientKeyPassword"`
	// PEM file with the authorities that may have signed the server's certificate; by default the system's. It is read again for each connection.
	CACertFile string `config:"cacertFile"`
}

// IsInsecure reports whether to connect without TLS: as clouddriver.insecure
// says, and where it says nothing, if nothing is set up for TLS either.
func (c Clouddriver) IsInsecure() bool {
	if c.Insecure != nil {
		return *c.Insecure
	}
	return c.TLS == TLS{}
}

// TLSConfig makes the TLS configuration of the connection to the server, nil
// where it is to be plaintext. Client certificates follow their files;
// authorities are read once, so whoever dials anew asks anew.
func (c Clouddriver) TLSConfig() (*tls.Config, error) {
	if c.IsInsecure() {
		return nil, nil
	}
	return keypair.ClientTLS{
		ServerName: c.TLS.ServerName,
		SkipVerify: c.TLS.InsecureSkipVerify,
		CAFile:     c.TLS.CACertFile,
		KeyPair:    c.TLS.keyPairFiles(),
	}.TLSConfig()
}

func (t TLS) keyPairFiles() keypair.Files {
	return keypair.Files{Cert: t.ClientCertFile, Key: t.ClientKeyFile, Password: t.ClientKeyFilePassword.Reveal()}
}

// CertificateWarning tells of a client certificate that is expired or soon will be; ""
// where there is none or nothing to tell.
func (c Clouddriver) CertificateWarning(now time.Time) string {
	if c.IsInsecure() || c.TLS.ClientCertFile == "" {
		return ""
	}
	pair, err := keypair.Open(c.TLS.keyPairFiles())
	if err != nil {
		return err.Error()
	}
	return pair.Warning(now)
}

// Heartbeat is KeepAliveHeartbeatSeconds; 0 leaves it to the server.
func (c Clouddriver) Heartbeat() time.Duration { return seconds(c.KeepAliveHeartbeatSeconds) }

// HeartbeatTimeout is KeepAliveTimeOutSeconds, or three heartbeats.
func (c Clouddriver) HeartbeatTimeout() time.Duration {
	if c.KeepAliveTimeOutSeconds == 0 {
		return 3 * c.Heartbeat()
	}
	return seconds(c.KeepAliveTimeOutSeconds)
}

// Auth is what the agent shows to a proxy before the server.
type Auth struct {
	// Bearer token sent with each request. It may end at a proxy: the predecessor's server did not look at it.
	Token        configfile.Secret `config:"token"`
	TokenCommand TokenCommand      `config:"tokenCommand,unused"`
	// Seconds before a token of the hub is renewed.
	RefreshIntervalSeconds int `config:"refreshIntervalSeconds,unused" default:"0"`
}

// TokenCommand is a program that prints a bearer token.
type TokenCommand struct {
	// The program.
	Command string `config:"command"`
	// Its arguments. They are not shown, as one may be a secret.
	Args []configfile.Secret `config:"args"`
	// What it prints: the token itself (raw), or a JSON object with a field "token" (json).
	Format string `config:"format" default:"json"`
	// Seconds between two calls; 0 to call it once.
	RefreshIntervalSeconds int `config:"refreshIntervalSeconds" default:"0"`
}

// Backoff is how long to wait between attempts to connect.
type Backoff struct {
	// Wait after the first failure, in nanoseconds.
	BaseDelay int64 `config:"baseDelay" default:"1000000000"`
	// Factor from each wait to the next.
	Multiplier float64 `config:"multiplier" default:"1.6"`
	// Share of a wait that chance adds or takes.
	Jitter float64 `config:"jitter" default:"0.2"`
	// Longest wait, in nanoseconds.
	MaxDelay int64 `config:"maxDelay" default:"120000000000"`
}

// Base is BaseDelay.
func (b Backoff) Base() time.Duration { return time.Duration(b.BaseDelay) }

// Max is MaxDelay.
func (b Backoff) Max() time.Duration { return time.Duration(b.MaxDelay) }
