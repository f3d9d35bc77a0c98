package config

import (
	"crypto/tls"
	"time"

	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
)

// Clouddriver configures the connection to the server. The key keeps the
// predecessor's name.
type Clouddriver struct {
	// Host and port of the server, or of a gRPC proxy in front of it. HTTP/2 must work on the whole path.
	GRPC string `config:"grpc" default:"spin-clouddriver-grpc:9091"`
	// Connect without TLS. Default: true if nothing below clouddriver.tls is set, otherwise false.
	Insecure *bool `config:"insecure"`
	// Connect to the server directly: ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	NoProxy bool `config:"noProxy" default:"false"`
	// Security of the connection to the server.
	TLS TLS `config:"tls"`
	// Credentials for a proxy in front of the server.
	Auth Auth `config:"auth"`
	// Pauses between attempts to connect to the server. If none of these keys is set, pauses are random, up to 2
	// and then up to 4 seconds, so that all agents are back soon after an outage and not at once. If one is set,
	// the others have gRPC's values.
	Backoff uplink.Backoff `config:"backoff"`
	// The server's agents.heartbeatSeconds decides.
	KeepAliveHeartbeatSeconds int `config:"keepAliveHeartbeatSeconds,ignored" default:"20" minimum:"0"`
	// Three missed heartbeats end a connection.
	KeepAliveTimeOutSeconds int `config:"keepAliveTimeOutSeconds,ignored" default:"0" minimum:"0"`
	// Heartbeats detect a dead connection, with or without operations.
	KeepAliveOperationSeconds int `config:"keepAliveOperationSeconds,ignored" default:"0"`
	// Outcomes are sent again until the server acknowledges them.
	ResponseRetries ResponseRetries `config:"responseRetries,ignored"`
	// Outcomes are sent again until the server acknowledges them.
	Retries ClouddriverRetries `config:"retries,ignored"`
	// The server assigns a free account to a waiting agent at once.
	CacheRetryIntervalSeconds int `config:"cacheRetryIntervalSeconds,ignored" default:"0"`
	// Accounts come from files, not from the server.
	DynamicAccountsEnabled bool `config:"dynamicAccountsEnabled,ignored" default:"true"`
}

// TLS secures the connection to the server.
type TLS struct {
	// Name on the server's certificate, if it is not the host in clouddriver.grpc.
	ServerName string `config:"serverName"`
	// Do not verify the server's certificate. Anyone on the network path can then read what the agent sends and send operations to it.
	InsecureSkipVerify bool `config:"insecureSkipVerify" default:"false"`
	// PEM file with the agent's certificate and its intermediates, for mTLS. The agent reads it again when it changes.
	ClientCertFile string `config:"clientCertFile"`
	// PEM file with the private key: PKCS#8, PKCS#1 or EC. Default: the key is in clientCertFile.
	ClientKeyFile string `config:"clientKeyFile"`
	// Password of the private key, if it is encrypted PKCS#8.
	ClientKeyFilePassword configfile.Secret `config:"clientKeyFilePassword,alias=clientKeyPassword"`
	// PEM file with the certificate authorities of the server. Default: the system's. The agent reads it again for each connection.
	CACertFile string `config:"cacertFile"`
}

// IsInsecure reports whether to connect without TLS. If clouddriver.insecure is
// unset, that is so if clouddriver.tls is unset too.
func (c Clouddriver) IsInsecure() bool {
	if c.Insecure != nil {
		return *c.Insecure
	}
	return c.TLS == TLS{}
}

// TLSConfig returns the TLS configuration of the connection to the server, or nil
// for plaintext. It reads the authorities once, so callers must call it for each
// connection. The client certificate is read again when its files change.
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

// CertificateWarning returns a warning if the client certificate is unreadable, has
// expired or expires soon; otherwise it returns "".
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

// DescribeCertificate returns subject, issuer and validity of the client certificate, as it is in
// its file now. It returns "" if none is configured.
func (c Clouddriver) DescribeCertificate() string {
	if c.IsInsecure() || c.TLS.ClientCertFile == "" {
		return ""
	}
	pair, err := keypair.Open(c.TLS.keyPairFiles())
	if err != nil {
		return err.Error()
	}
	return c.TLS.ClientCertFile + ", " + pair.Describe()
}

// Auth holds what the agent presents to a proxy in front of the server.
type Auth struct {
	// Bearer token, sent with each request. Only a proxy checks it; the server does not.
	Token configfile.Secret `config:"token"`
	// Command that prints a bearer token, in place of token. It runs when the agent connects to the server, for
	// 30 seconds at most, and again when a proxy rejects the token.
	TokenCommand TokenCommand `config:"tokenCommand"`
	// Was for tokens of the predecessor's cloud service, which no longer exists.
	RefreshIntervalSeconds int `config:"refreshIntervalSeconds,ignored" default:"0"`
}

// TokenCommand is a program that prints a bearer token.
type TokenCommand struct {
	// Program that prints a bearer token.
	Command string `config:"command"`
	// Arguments of the program. They are masked in output, because one may be a secret.
	Args []configfile.Secret `config:"args"`
	// Format of the output: raw (the token itself) or json (an object with a field token).
	Format string `config:"format" default:"json" enum:"json,raw"`
	// Age at which a token is replaced, in seconds. The program runs for the next stream that the agent opens, not
	// in the background. 0 to replace a token only after it was rejected.
	RefreshInterval time.Duration `config:"refreshIntervalSeconds" format:"seconds" default:"0" minimum:"0"`
}
