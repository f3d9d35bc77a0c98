package artifacts

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// Settings are artifact accounts and limits as files have them, with Clouddriver's keys.
type Settings struct {
	// Serve artifacts. If false, there are no artifact accounts, and requests for artifacts fail.
	Enabled bool `config:"enabled" default:"true"`
	// Files from GitHub.
	GitHub GitHub `config:"github"`
	// Files from GitLab.
	GitLab GitLab `config:"gitlab"`
	// Files from Bitbucket.
	Bitbucket Bitbucket `config:"bitbucket"`
	// Archives of Git repositories.
	Git Git `config:"git-repo,alias=gitrepo,alias=gitRepo"`
	// Files from web servers.
	HTTP HTTP `config:"http"`
	// Charts of Helm repositories.
	Helm Helm `config:"helm"`
	// Objects of Google Cloud Storage.
	GCS GCS `config:"gcs"`
	// Objects of S3.
	S3 S3 `config:"s3"`
	// Objects of Oracle Cloud's Object Storage.
	Oracle Oracle `config:"oracle"`

	// Limits of what artifacts cost.
	Limits Limits `config:"limits"`
	// Addresses from which artifacts may be fetched.
	Network Network `config:"network"`
}

// GitHub has the accounts of GitHub.
type GitHub struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []GitHubAccount `config:"accounts"`
}

// GitLab has the accounts of GitLab.
type GitLab struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []GitLabAccount `config:"accounts"`
}

// Bitbucket has the accounts of Bitbucket.
type Bitbucket struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []BitbucketAccount `config:"accounts"`
}

// Git has the accounts of Git servers.
type Git struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which repositories are cloned.
	Accounts []GitAccount `config:"accounts"`
	// Clones are shallow, and removed at once.
	CloneRetentionMinutes int `config:"cloneRetentionMinutes,alias=clone-retention-minutes,ignored"`
	// Clones are shallow, and removed at once.
	CloneRetentionCheckMs int `config:"cloneRetentionCheckMs,alias=clone-retention-check-ms,ignored"`
	// Clones are shallow, and removed at once.
	CloneRetentionMaxBytes int `config:"cloneRetentionMaxBytes,alias=clone-retention-max-bytes,ignored"`
	// Clones do not wait for each other.
	CloneWaitLockTimeoutSec int `config:"cloneWaitLockTimeoutSec,alias=clone-wait-lock-timeout-sec,ignored"`
	// References must be URLs with http, https or ssh, or start with git@.
	ValidGitURLRegex string `config:"validGitUrlRegex,ignored"`
}

// HTTP has the accounts of web servers.
type HTTP struct {
	// Use the accounts, and no-auth-http-account if none of them has credentials.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []HTTPAccount `config:"accounts"`
}

// Helm has the Helm repositories.
type Helm struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which charts are fetched.
	Accounts []HelmAccount `config:"accounts"`
}

// GCS has the accounts of Google Cloud Storage.
type GCS struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which objects are fetched.
	Accounts []GCSAccount `config:"accounts"`
}

// S3 has the accounts of S3.
type S3 struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which objects are fetched.
	Accounts []S3Account `config:"accounts"`
	// artifacts.limits limits the time instead.
	ClientExecutionTimeout int `config:"clientExecutionTimeout,ignored"`
	// The server has its own limits for connections.
	ConnectionMaxIdleMillis int `config:"connectionMaxIdleMillis,ignored"`
	// artifacts.limits limits the time instead.
	ConnectionTimeout int `config:"connectionTimeout,ignored"`
	// The server has its own limits for connections.
	ConnectionTTL int `config:"connectionTTL,ignored"`
	// The server has its own limits for connections.
	MaxConnections int `config:"maxConnections,ignored"`
	// artifacts.limits limits the time instead.
	RequestTimeout int `config:"requestTimeout,ignored"`
	// artifacts.limits limits the time instead.
	SocketTimeout int `config:"socketTimeout,ignored"`
	// The server has its own limits for connections.
	ValidateAfterInactivityMillis int `config:"validateAfterInactivityMillis,ignored"`
	// Endpoints are not logged.
	LogEndpoints bool `config:"logEndpoints,ignored"`
}

// Oracle has the accounts of Oracle Cloud.
type Oracle struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which objects are fetched.
	Accounts []OracleAccount `config:"accounts"`
}

// Limits bounds what artifacts cost. Numbers that are zero have the defaults of their tags.
type Limits struct {
	// Size of an artifact, and of what is received of a Git repository.
	MaxBytes int64 `config:"maxBytes" format:"bytes" default:"512MiB" minimum:"1MiB" maximum:"1TiB"`
	// Size of the index of a Helm repository.
	MaxIndexBytes int64 `config:"maxIndexBytes" format:"bytes" default:"64MiB" minimum:"1KiB" maximum:"1GiB"`
	// Size of a file in a Git repository, which is in memory while a clone is unpacked. A quarter of it for files
	// that Git stores as differences, because these take several times their size.
	MaxGitObjectBytes int64 `config:"maxGitObjectBytes" format:"bytes" default:"64MiB" minimum:"1KiB" maximum:"8GiB"`
	// Time for an artifact as a whole.
	Timeout time.Duration `config:"timeout" default:"10m" minimum:"1s" maximum:"24h"`
	// Time without any byte from the other server.
	StallTimeout time.Duration `config:"stallTimeout" default:"30s" minimum:"1s" maximum:"24h"`
	// Time to connect to another server.
	ConnectTimeout time.Duration `config:"connectTimeout" default:"10s" minimum:"1s" maximum:"24h"`
	// Number of artifacts that are fetched at the same time. More wait for up to 30 seconds.
	MaxConcurrent int `config:"maxConcurrent" default:"16" minimum:"1" maximum:"1000"`
	// Directory for clones of Git repositories while they are archived. Default: the system's directory for temporary files.
	TempDir string `config:"tempDir"`
}

func (l Limits) egress() egress.Limits {
	return egress.Limits{MaxBytes: l.MaxBytes, Timeout: l.Timeout, StallTimeout: l.StallTimeout, ConnectTimeout: l.ConnectTimeout}
}

// Network decides to which addresses the server connects for artifacts.
type Network struct {
	// Addresses and networks that are allowed although they are loopback, link-local, multicast or a cloud provider's metadata service.
	AllowedAddresses []string `config:"allowedAddresses"`
	// Addresses and networks that are denied in addition, for example 10.0.0.0/8. allowedAddresses takes precedence.
	DeniedAddresses []string `config:"deniedAddresses"`
}

// Config returns the accounts of the types that are enabled, and the limits.
func (s Settings) Config() Config {
	return Config{
		Disabled: !s.Enabled, HTTPEnabled: s.HTTP.Enabled, Limits: s.Limits,
		Policy:    egress.Policy{Allowed: networks(s.Network.AllowedAddresses), Denied: networks(s.Network.DeniedAddresses)},
		GitHub:    enabled(s.GitHub.Enabled, s.GitHub.Accounts),
		GitLab:    enabled(s.GitLab.Enabled, s.GitLab.Accounts),
		Bitbucket: enabled(s.Bitbucket.Enabled, s.Bitbucket.Accounts),
		Git:       enabled(s.Git.Enabled, s.Git.Accounts),
		HTTP:      enabled(s.HTTP.Enabled, s.HTTP.Accounts),
		Helm:      enabled(s.Helm.Enabled, s.Helm.Accounts),
		GCS:       enabled(s.GCS.Enabled, s.GCS.Accounts),
		S3:        enabled(s.S3.Enabled, s.S3.Accounts),
		Oracle:    enabled(s.Oracle.Enabled, s.Oracle.Accounts),
	}
}

// enabled returns accounts only if their type is enabled.
func enabled[A any](isEnabled bool, accounts []A) []A {
	if !isEnabled {
		return nil
	}
	return accounts
}

// Check reports what is wrong with the settings, and which accounts anybody can use to have credentials sent anywhere.
func (s Settings) Check(c configfile.Checker) {
	checkNetworks(c.At("network"), "allowedAddresses", s.Network.AllowedAddresses)
	checkNetworks(c.At("network"), "deniedAddresses", s.Network.DeniedAddresses)
	checkAccounts(c, "github", s.GitHub.Enabled, s.GitHub.Accounts, func(a GitHubAccount, c configfile.Checker) string {
		checkHosts(c, a.URLRestrictions, s.GitHub.Enabled && a.login().hasSecret())
		return a.Name
	})
	checkAccounts(c, "gitlab", s.GitLab.Enabled, s.GitLab.Accounts, func(a GitLabAccount, c configfile.Checker) string {
		checkHosts(c, a.URLRestrictions, s.GitLab.Enabled && a.login().hasSecret())
		return a.Name
	})
	checkAccounts(c, "bitbucket", s.Bitbucket.Enabled, s.Bitbucket.Accounts, func(a BitbucketAccount, c configfile.Checker) string {
		checkHosts(c, a.URLRestrictions, s.Bitbucket.Enabled && a.login().hasSecret())
		return a.Name
	})
	checkAccounts(c, "http", s.HTTP.Enabled, s.HTTP.Accounts, func(a HTTPAccount, c configfile.Checker) string {
		checkHosts(c, a.URLRestrictions, s.HTTP.Enabled && a.login().hasSecret())
		return a.Name
	})
	checkAccounts(c, "helm", s.Helm.Enabled, s.Helm.Accounts, func(a HelmAccount, c configfile.Checker) string {
		checkURL(c, "repository", a.Repository, s.Helm.Enabled)
		return a.Name
	})
	checkAccounts(c, "git-repo", s.Git.Enabled, s.Git.Accounts, func(a GitAccount, _ configfile.Checker) string { return a.Name })
	checkAccounts(c, "gcs", s.GCS.Enabled, s.GCS.Accounts, func(a GCSAccount, c configfile.Checker) string {
		checkURL(c, "endpoint", a.Endpoint, false)
		return a.Name
	})
	checkAccounts(c, "s3", s.S3.Enabled, s.S3.Accounts, func(a S3Account, c configfile.Checker) string {
		checkURL(c, "apiEndpoint", a.Endpoint, false)
		return a.Name
	})
	checkAccounts(c, "oracle", s.Oracle.Enabled, s.Oracle.Accounts, func(a OracleAccount, _ configfile.Checker) string { return a.Name })
}

// checkAccounts checks each account of a type with check, which returns its name. Two accounts of a type must not share a name,
// because the second could never be chosen.
func checkAccounts[A any](c configfile.Checker, group string, isEnabled bool, accounts []A, check func(A, configfile.Checker) string) {
	c = c.At(group)
	if len(accounts) > 0 && !isEnabled {
		c.Notice("accounts", "%s is set, but %s is not true: the accounts are not used", c.Path("accounts"), c.Path("enabled"))
	}
	var names []string
	for i, account := range accounts {
		key := fmt.Sprintf("accounts[%d]", i)
		switch name := check(account, c.At(key)); {
		case !isEnabled:
		case name == "":
			c.Problem(key, " must have a name")
		case slices.Contains(names, name):
			c.Problem(key, " has the name %q, which an account before it has: give each account another name", name)
		default:
			names = append(names, name)
		}
	}
}

// checkHosts notes an account whose credentials anybody can have sent anywhere.
func checkHosts(account configfile.Checker, u *URLRestrictions, hasCredentials bool) {
	switch {
	case u != nil:
		u.check(account, "urlRestrictions")
	case hasCredentials:
		account.Notice("", "%s has no urlRestrictions: its credentials are sent to whatever host a pipeline names; "+
			"set urlRestrictions.allowedHostnamesRegex to the hosts that they are for", account.Path(""))
	}
}

func checkNetworks(c configfile.Checker, key string, texts []string) {
	for _, network := range texts {
		if _, err := parseNetwork(network); err != nil {
			c.Problem(key, " must list addresses like 10.0.0.1 and networks like 10.0.0.0/8, got %q", network)
		}
	}
}

func checkURL(c configfile.Checker, key, address string, required bool) {
	u, err := url.Parse(address)
	if address == "" && !required {
		return
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		c.Problem(key, " must be a URL that starts with http:// or https://")
	}
}

// networks parses networks that were checked.
func networks(texts []string) (parsed []netip.Prefix) {
	for _, network := range texts {
		if n, err := parseNetwork(network); err == nil {
			parsed = append(parsed, n)
		}
	}
	return parsed
}

// parseNetwork parses "10.0.0.0/8" or "10.0.0.1".
func parseNetwork(network string) (netip.Prefix, error) {
	if strings.Contains(network, "/") {
		n, err := netip.ParsePrefix(network)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("parse the network: %w", err)
		}
		return n.Masked(), nil
	}
	address, err := netip.ParseAddr(network)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse the address: %w", err)
	}
	return netip.PrefixFrom(address, address.BitLen()), nil
}
