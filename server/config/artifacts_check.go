package config

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
)

// checkArtifacts validates artifact accounts.
func (c *Config) checkArtifacts(a Artifacts) {
	c.checkArtifactLimits(a.Limits)
	c.checkNetworks("artifacts.network.allowedAddresses", a.Network.AllowedAddresses)
	c.checkNetworks("artifacts.network.deniedAddresses", a.Network.DeniedAddresses)
	c.checkArtifactNames(a)
	for i, x := range a.GitHub.Accounts {
		c.checkRestrictions(fmt.Sprintf("artifacts.github.accounts[%d]", i), x.URLRestrictions,
			a.GitHub.Enabled && hasSecret([]configfile.Secret{x.Password, x.Token}, x.UsernamePasswordFile, x.TokenFile))
	}
	for i, x := range a.GitLab.Accounts {
		c.checkRestrictions(fmt.Sprintf("artifacts.gitlab.accounts[%d]", i), x.URLRestrictions,
			a.GitLab.Enabled && hasSecret([]configfile.Secret{x.Token}, x.TokenFile))
	}
	for i, x := range a.Bitbucket.Accounts {
		c.checkRestrictions(fmt.Sprintf("artifacts.bitbucket.accounts[%d]", i), x.URLRestrictions,
			a.Bitbucket.Enabled && hasSecret([]configfile.Secret{x.Password, x.Token}, x.UsernamePasswordFile, x.TokenFile))
	}
	for i, x := range a.HTTP.Accounts {
		c.checkRestrictions(fmt.Sprintf("artifacts.http.accounts[%d]", i), x.URLRestrictions,
			a.HTTP.Enabled && hasSecret([]configfile.Secret{x.Password}, x.UsernamePasswordFile))
	}
	for i, x := range a.Helm.Accounts {
		c.checkURL(fmt.Sprintf("artifacts.helm.accounts[%d].repository", i), x.Repository, a.Helm.Enabled)
	}
	for i, x := range a.S3.Accounts {
		c.checkURL(fmt.Sprintf("artifacts.s3.accounts[%d].apiEndpoint", i), x.APIEndpoint, false)
	}
	for i, x := range a.GCS.Accounts {
		c.checkURL(fmt.Sprintf("artifacts.gcs.accounts[%d].endpoint", i), x.Endpoint, false)
	}
}

func hasSecret(secrets []configfile.Secret, files ...string) bool {
	return slices.ContainsFunc(secrets, func(s configfile.Secret) bool { return s.Reveal() != "" }) ||
		slices.ContainsFunc(files, func(file string) bool { return file != "" })
}

func (c *Config) checkArtifactLimits(l ArtifactLimits) {
	const prefix = "artifacts.limits."
	if l.MaxBytes < 1<<20 || l.MaxBytes > 1<<40 {
		c.addProblem(prefix+"maxBytes", "%q must be from 1MiB to 1TiB, got %s", prefix+"maxBytes", l.MaxBytes)
	}
	if l.MaxIndexBytes < 1<<10 || l.MaxIndexBytes > 1<<30 {
		c.addProblem(prefix+"maxIndexBytes", "%q must be from 1KiB to 1GiB, got %s", prefix+"maxIndexBytes", l.MaxIndexBytes)
	}
	if l.MaxGitObjectBytes < 1<<10 || l.MaxGitObjectBytes > 8<<30 {
		c.addProblem(prefix+"maxGitObjectBytes", "%q must be from 1KiB to 8GiB, got %s", prefix+"maxGitObjectBytes", l.MaxGitObjectBytes)
	}
	if l.MaxConcurrent < 1 || l.MaxConcurrent > 1000 {
		c.addProblem(prefix+"maxConcurrent", "%q must be from 1 to 1000, got %d", prefix+"maxConcurrent", l.MaxConcurrent)
	}
	times := map[string]configfile.Duration{"timeout": l.Timeout, "stallTimeout": l.StallTimeout, "connectTimeout": l.ConnectTimeout}
	for key, d := range times {
		if time.Duration(d) < time.Second || time.Duration(d) > 24*time.Hour {
			c.addProblem(prefix+key, "%q must be from 1s to 24h, got %s", prefix+key, d)
		}
	}
}

// checkArtifactNames requires that accounts have names. Two accounts of the same type must not
// share one, because the second could never be chosen.
func (c *Config) checkArtifactNames(a Artifacts) {
	c.checkNames("artifacts.github", a.GitHub.Enabled, namesOf(a.GitHub.Accounts, func(x GitHubArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.gitlab", a.GitLab.Enabled, namesOf(a.GitLab.Accounts, func(x GitLabArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.bitbucket", a.Bitbucket.Enabled,
		namesOf(a.Bitbucket.Accounts, func(x BitbucketArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.http", a.HTTP.Enabled, namesOf(a.HTTP.Accounts, func(x HTTPArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.helm", a.Helm.Enabled, namesOf(a.Helm.Accounts, func(x HelmArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.git-repo", a.Git.Enabled, namesOf(a.Git.Accounts, func(x GitArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.gcs", a.GCS.Enabled, namesOf(a.GCS.Accounts, func(x GCSArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.s3", a.S3.Enabled, namesOf(a.S3.Accounts, func(x S3ArtifactAccount) string { return x.Name }))
	c.checkNames("artifacts.oracle", a.Oracle.Enabled, namesOf(a.Oracle.Accounts, func(x OracleArtifactAccount) string { return x.Name }))
}

func namesOf[T any](accounts []T, name func(T) string) []string {
	var names []string
	for _, account := range accounts {
		names = append(names, name(account))
	}
	return names
}

func (c *Config) checkNames(group string, isEnabled bool, names []string) {
	if len(names) > 0 && !isEnabled {
		c.addNotice(group+".accounts", fmt.Sprintf("%s.accounts is set, but %s.enabled is not true: the accounts are not used", group, group))
		return
	}
	for i, name := range names {
		path := fmt.Sprintf("%s.accounts[%d]", group, i)
		switch {
		case name == "":
			c.addProblem(path, "%q must have a name", path)
		case slices.Contains(names[:i], name):
			c.addProblem(path, "%q has the name %q, which an account before it has: give each account another name", path, name)
		}
	}
}

// checkRestrictions notes an account whose credentials anybody can have sent anywhere.
func (c *Config) checkRestrictions(account string, u *URLRestrictions, hasCredentials bool) {
	path := account + ".urlRestrictions"
	if u == nil {
		if hasCredentials {
			c.addNotice(account, account+" has no urlRestrictions: its credentials are sent to whatever host a pipeline names; "+
				"set urlRestrictions.allowedHostnamesRegex to the hosts that they are for")
		}
		return
	}
	expressions := slices.Concat([]string{u.AllowedHostnamesRegex}, u.AllowedDomains, u.ExtraExcludedPatterns)
	for _, expression := range expressions {
		if _, err := artifacts.CompilePattern(expression); err != nil {
			c.addProblem(path, "%q has an invalid regular expression, %q: Go's expressions have no lookarounds and no backreferences", path, expression)
		}
	}
	c.checkNetworks(path+".rejectedIps", u.RejectedIPs)
}

func (c *Config) checkNetworks(path string, texts []string) {
	for _, text := range texts {
		if _, err := parseNetwork(text); err != nil {
			c.addProblem(path, "%q must list addresses like 10.0.0.1 and networks like 10.0.0.0/8, got %q", path, text)
		}
	}
}

func (c *Config) checkURL(path, text string, required bool) {
	u, err := url.Parse(text)
	if text == "" && !required {
		return
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		c.addProblem(path, "%q must be a URL that starts with http:// or https://", path)
	}
}

func (c *Config) checkArtifactStore(s ArtifactStore) {
	switch s.Type {
	case "":
		return
	case "s3":
	default:
		c.addProblem("artifact-store.type", "%q must be s3, got %q", "artifact-store.type", s.Type)
	}
	if s.S3.Bucket == "" {
		c.addProblem("artifact-store.type", "%q is s3, but %q is missing", "artifact-store.type", "artifact-store.s3.bucket")
	}
	c.checkURL("artifact-store.s3.url", s.S3.URL, false)
}
