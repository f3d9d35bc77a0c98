package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// ArtifactConfig returns the configuration of package artifacts. The settings were validated by
// Load.
func (c *Config) ArtifactConfig() artifacts.Config {
	a := c.Artifacts
	cfg := artifacts.Config{
		Disabled: !a.Enabled, HTTPEnabled: a.HTTP.Enabled, Store: c.ArtifactStore.config(),
		Policy: egress.Policy{Allowed: networks(a.Network.AllowedAddresses), Denied: networks(a.Network.DeniedAddresses)},
		Limits: egress.Limits{MaxBytes: int64(a.Limits.MaxBytes), Timeout: time.Duration(a.Limits.Timeout),
			StallTimeout: time.Duration(a.Limits.StallTimeout), ConnectTimeout: time.Duration(a.Limits.ConnectTimeout)},
		MaxIndexBytes: int64(a.Limits.MaxIndexBytes), MaxGitObjectBytes: int64(a.Limits.MaxGitObjectBytes),
		MaxConcurrent: a.Limits.MaxConcurrent, TempDir: a.Limits.TempDir, Front50URL: c.Front50.url(),
	}
	a.addFileAccounts(&cfg)
	a.addRepositories(&cfg)
	a.addBuckets(&cfg)
	return cfg
}

// enabled returns accounts only if their type is enabled.
func enabled[T any](isEnabled bool, accounts []T) []T {
	if !isEnabled {
		return nil
	}
	return accounts
}

func (a Artifacts) addFileAccounts(cfg *artifacts.Config) {
	for _, x := range enabled(a.GitHub.Enabled, a.GitHub.Accounts) {
		cfg.GitHub = append(cfg.GitHub, artifacts.GitHubAccount{Name: x.Name, UseContentAPI: x.UseContentAPI, APIVersion: x.APIVersion,
			Login:        login(x.Username, x.Password, x.UsernamePasswordFile, token(x.Token, x.TokenFile)),
			Restrictions: x.URLRestrictions.restrictions()})
	}
	for _, x := range enabled(a.GitLab.Enabled, a.GitLab.Accounts) {
		cfg.GitLab = append(cfg.GitLab, artifacts.GitLabAccount{Name: x.Name, Login: artifacts.Login{Token: token(x.Token, x.TokenFile)},
			Restrictions: x.URLRestrictions.restrictions()})
	}
	for _, x := range enabled(a.Bitbucket.Enabled, a.Bitbucket.Accounts) {
		cfg.Bitbucket = append(cfg.Bitbucket, artifacts.BitbucketAccount{Name: x.Name,
			Login:        login(x.Username, x.Password, x.UsernamePasswordFile, token(x.Token, x.TokenFile)),
			Restrictions: x.URLRestrictions.restrictions()})
	}
	for _, x := range enabled(a.HTTP.Enabled, a.HTTP.Accounts) {
		cfg.HTTP = append(cfg.HTTP, artifacts.HTTPAccount{Name: x.Name, Login: login(x.Username, x.Password, x.UsernamePasswordFile, nil),
			Restrictions: x.URLRestrictions.restrictions()})
	}
}

func (a Artifacts) addRepositories(cfg *artifacts.Config) {
	for _, x := range enabled(a.Helm.Enabled, a.Helm.Accounts) {
		cfg.Helm = append(cfg.Helm, artifacts.HelmAccount{Name: x.Name, Repository: x.Repository,
			Login: login(x.Username, x.Password, x.UsernamePasswordFile, nil)})
	}
	for _, x := range enabled(a.Git.Enabled, a.Git.Accounts) {
		cfg.Git = append(cfg.Git, artifacts.GitAccount{Name: x.Name,
			Login:      login(x.Username, x.Password, x.UsernamePasswordFile, token(x.Token, x.TokenFile)),
			SSHKeyPath: x.SSHPrivateKeyFilePath, SSHKeyPassphrase: passphrase(x),
			KnownHostsPath: x.SSHKnownHostsFilePath, TrustUnknownHosts: x.SSHTrustUnknownHosts, AllowedHosts: x.AllowedHosts})
	}
}

func passphrase(x GitArtifactAccount) artifacts.Credential {
	if x.SSHPrivateKeyPassphraseCmd != "" {
		return artifacts.Command(x.SSHPrivateKeyPassphraseCmd)
	}
	return artifacts.Text(x.SSHPrivateKeyPassphrase.Reveal())
}

func (a Artifacts) addBuckets(cfg *artifacts.Config) {
	for _, x := range enabled(a.GCS.Enabled, a.GCS.Accounts) {
		cfg.GCS = append(cfg.GCS, artifacts.GCSAccount{Name: x.Name, JSONPath: strings.TrimPrefix(x.JSONPath, "file:"), Endpoint: x.Endpoint})
	}
	for _, x := range enabled(a.S3.Enabled, a.S3.Accounts) {
		account := artifacts.S3Account{Name: x.Name, Endpoint: x.APIEndpoint, Region: x.Region, AccessKeyID: x.AccessKeyID,
			SecretKey: artifacts.Text(x.SecretAccessKey.Reveal())}
		if x.APIEndpoint != "" {
			account.Region = cmp.Or(x.APIRegion, x.Region)
		}
		cfg.S3 = append(cfg.S3, account)
	}
	for _, x := range enabled(a.Oracle.Enabled, a.Oracle.Accounts) {
		cfg.Oracle = append(cfg.Oracle, artifacts.OracleAccount{Name: x.Name, Namespace: x.Namespace, Region: x.Region, UserID: x.UserID,
			Fingerprint: x.Fingerprint, TenancyID: x.TenancyID, PrivateKeyPath: x.SSHPrivateKeyFilePath,
			PrivateKeyPassphrase: artifacts.Text(x.PrivateKeyPassphrase.Reveal())})
	}
}

func (s ArtifactStore) config() *artifacts.StoreConfig {
	if s.Type == "" {
		return nil
	}
	x := s.S3
	return &artifacts.StoreConfig{Bucket: x.Bucket, S3: artifacts.S3Account{
		Name: "artifact-store", Endpoint: x.URL, Region: x.Region, AccessKeyID: x.AccessKey, SecretKey: artifacts.Text(x.SecretKey.Reveal()),
		Profile: x.Profile, Anonymous: x.AccessKey == "" && x.Profile == "" && x.URL != "", VirtualHosts: !x.ForcePathStyle,
	}}
}

// login returns the credentials of an account. Each file takes precedence over the same credential
// in the configuration.
func login(username string, password configfile.Secret, file string, token artifacts.Credential) artifacts.Login {
	return artifacts.Login{Username: username, Password: artifacts.Text(password.Reveal()), UsernamePassword: artifacts.File(file),
		Token: token}
}

func token(inline configfile.Secret, file string) artifacts.Credential {
	if file != "" {
		return artifacts.File(file)
	}
	return artifacts.Text(inline.Reveal())
}

// restrictions returns nil for nil.
func (u *URLRestrictions) restrictions() *artifacts.Restrictions {
	if u == nil {
		return nil
	}
	r := &artifacts.Restrictions{AllowedSchemes: u.AllowedSchemes, RejectIPs: u.RejectVerbatimIPs, RejectedNetworks: networks(u.RejectedIPs),
		AllowLoopback: !u.RejectLocalhost, AllowLinkLocal: !u.RejectLinkLocal}
	r.AllowedHostnames, _ = artifacts.CompilePattern(u.AllowedHostnamesRegex) // Load has validated it
	r.AllowedDomains = patterns(u.AllowedDomains)
	domains := slices.Clone(u.ExcludedDomains)
	for _, name := range u.ExcludedDomainsFromEnvironment {
		if domain := os.Getenv(name); domain != "" {
			domains = append(domains, domain)
		}
	}
	excluded := slices.Clone(u.ExtraExcludedPatterns)
	for _, domain := range domains {
		excluded = append(excluded, `.+\.`+regexp.QuoteMeta(strings.ToLower(domain)))
	}
	r.ExcludedPatterns = patterns(excluded)
	return r
}

// patterns compiles expressions that were validated.
func patterns(expressions []string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, expression := range expressions {
		if p, err := artifacts.CompilePattern(expression); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// networks parses networks that were validated.
func networks(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if n, err := parseNetwork(text); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// parseNetwork parses "10.0.0.0/8" or "10.0.0.1".
func parseNetwork(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("parse the network: %w", err)
		}
		return n.Masked(), nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse the address: %w", err)
	}
	return netip.PrefixFrom(address, address.BitLen()), nil
}
