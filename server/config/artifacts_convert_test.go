package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/artifacts"
)

// reveal returns a credential, or what is wrong with it.
func reveal(c artifacts.Credential) string {
	if c == nil {
		return ""
	}
	text, err := c()
	if err != nil {
		return err.Error()
	}
	return text
}

func artifactConfig(t *testing.T, text string) artifacts.Config {
	t.Helper()
	c, err := parse("c.yml", []byte(text), nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c.ArtifactConfig()
}

// TestArtifactLogins checks the credentials of each type of account, and that files take precedence.
func TestArtifactLogins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("u:fromfile\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logins := map[string]func(artifacts.Config) artifacts.Login{
		"github":    func(c artifacts.Config) artifacts.Login { return c.GitHub[0].Login },
		"gitlab":    func(c artifacts.Config) artifacts.Login { return c.GitLab[0].Login },
		"bitbucket": func(c artifacts.Config) artifacts.Login { return c.Bitbucket[0].Login },
		"git-repo":  func(c artifacts.Config) artifacts.Login { return c.Git[0].Login },
		"http":      func(c artifacts.Config) artifacts.Login { return c.HTTP[0].Login },
		"helm":      func(c artifacts.Config) artifacts.Login { return c.Helm[0].Login },
	}
	withPassword, withToken := "github bitbucket git-repo http helm", "github gitlab bitbucket git-repo"
	for _, tt := range []struct{ types, fields, want string }{
		{withPassword, "username: u, password: p", "u p  "},
		{withPassword, "usernamePasswordFile: " + file, "  u:fromfile "},
		{withToken, "token: t", "   t"},
		{withToken, "token: t, tokenFile: " + file, "   u:fromfile"},
	} {
		for _, name := range strings.Fields(tt.types) {
			extra := map[string]string{"helm": ", repository: 'https://charts.example.com'"}[name]
			c := artifactConfig(t, "artifacts."+name+": {enabled: true, accounts: [{name: a, "+tt.fields+extra+"}]}")
			l := logins[name](c)
			got := strings.Join([]string{l.Username, reveal(l.Password), reveal(l.UsernamePassword), reveal(l.Token)}, " ")
			if got != tt.want {
				t.Errorf("%s, %s: got %q, want %q", name, tt.fields, got, tt.want)
			}
		}
	}
}

// TestArtifactAccounts sets the other keys of accounts, and checks what becomes of them.
func TestArtifactAccounts(t *testing.T) {
	for _, tt := range []struct {
		setting, want string
		got           func(artifacts.Config) any
	}{
		{"enabled: false", "true", func(c artifacts.Config) any { return c.Disabled }},
		{"http.enabled: true", "true", func(c artifacts.Config) any { return c.HTTPEnabled }},
		{"github: {enabled: true, accounts: [{name: g, useContentAPI: true, githubAPIVersion: v4}]}", "[g true v4]",
			func(c artifacts.Config) any {
				if len(c.GitHub) == 0 {
					return nil
				}
				return []any{c.GitHub[0].Name, c.GitHub[0].UseContentAPI, c.GitHub[0].APIVersion}
			}},
		{"git-repo: {enabled: true, accounts: [{name: g, sshPrivateKeyFilePath: /k, sshPrivateKeyPassphrase: p, sshKnownHostsFilePath: /h, " +
			"sshTrustUnknownHosts: true, allowedHosts: [x]}]}", "[g /k p /h true [x]]", func(c artifacts.Config) any {
			if len(c.Git) == 0 {
				return nil
			}
			g := c.Git[0]
			return []any{g.Name, g.SSHKeyPath, reveal(g.SSHKeyPassphrase), g.KnownHostsPath, g.TrustUnknownHosts, g.AllowedHosts}
		}},
		{"helm: {enabled: true, accounts: [{name: h, repository: 'https://charts.example.com'}]}", "[h https://charts.example.com]",
			func(c artifacts.Config) any {
				if len(c.Helm) == 0 {
					return nil
				}
				return []any{c.Helm[0].Name, c.Helm[0].Repository}
			}},
		{"gcs: {enabled: true, accounts: [{name: g, jsonPath: 'file:/k.json', endpoint: 'http://gcs'}]}", "[{g /k.json http://gcs}]",
			func(c artifacts.Config) any { return c.GCS }},
		{"s3: {enabled: true, accounts: [{name: s, region: r, awsAccessKeyId: k, awsSecretAccessKey: s}]}", "[s  r k s]", s3Account},
		{"s3: {enabled: true, accounts: [{name: s, apiEndpoint: 'http://minio', apiRegion: a, region: r}]}", "[s http://minio a  ]", s3Account},
		{"oracle: {enabled: true, accounts: [{name: o, namespace: n, region: us-phoenix-1, userId: u, fingerprint: f, tenancyId: t, " +
			"sshPrivateKeyFilePath: /k, privateKeyPassphrase: p}]}", "[o n us-phoenix-1 u f t /k p]", func(c artifacts.Config) any {
			if len(c.Oracle) == 0 {
				return nil
			}
			o := c.Oracle[0]
			return []any{o.Name, o.Namespace, o.Region, o.UserID, o.Fingerprint, o.TenancyID, o.PrivateKeyPath, reveal(o.PrivateKeyPassphrase)}
		}},
		{"limits: {maxBytes: 1MiB, maxIndexBytes: 2MiB, maxGitObjectBytes: 3MiB, timeout: 1m, stallTimeout: 2s, connectTimeout: 3s, " +
			"maxConcurrent: 4, tempDir: /t}", "[1048576 2097152 3145728 1m0s 2s 3s 4 /t]", func(c artifacts.Config) any {
			return []any{c.Limits.MaxBytes, c.MaxIndexBytes, c.MaxGitObjectBytes, c.Limits.Timeout, c.Limits.StallTimeout, c.Limits.ConnectTimeout,
				c.MaxConcurrent, c.TempDir}
		}},
		{"network: {allowedAddresses: [127.0.0.1], deniedAddresses: [10.0.0.0/8]}", "[[127.0.0.1/32] [10.0.0.0/8]]",
			func(c artifacts.Config) any { return []any{c.Policy.Allowed, c.Policy.Denied} }},
	} {
		if got := fmt.Sprint(tt.got(artifactConfig(t, "artifacts: {"+tt.setting+"}"))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.setting, got, tt.want)
		}
		if got := fmt.Sprint(tt.got(artifactConfig(t, "redis: {}"))); got == tt.want {
			t.Errorf("%s: got %s without the setting, too", tt.setting, got)
		}
	}
}

func s3Account(c artifacts.Config) any {
	if len(c.S3) == 0 {
		return nil
	}
	s := c.S3[0]
	return []any{s.Name, s.Endpoint, s.Region, s.AccessKeyID, reveal(s.SecretKey)}
}

// TestArtifactPassphraseCommand checks that the output of a program takes precedence.
func TestArtifactPassphraseCommand(t *testing.T) {
	program := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho printed\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := artifactConfig(t, "artifacts.git-repo: {enabled: true, accounts: [{name: g, sshPrivateKeyPassphrase: p, sshPrivateKeyPassphraseCmd: "+program+"}]}")
	if got := reveal(c.Git[0].SSHKeyPassphrase); got != "printed" {
		t.Errorf("got %q, want the output of the program", got)
	}
}

// TestArtifactStoreSettings checks each key of the store of large artifacts.
func TestArtifactStoreSettings(t *testing.T) {
	if c := artifactConfig(t, "redis: {}"); c.Store != nil {
		t.Errorf("without a type: got %+v", c.Store)
	}
	for text, want := range map[string]string{
		"{type: s3, s3: {bucket: b, region: r, url: 'http://s3', accessKey: k, secretKey: s}}": "[b r http://s3 k s  false false]",
		"{type: s3, s3: {bucket: b, profile: p, forcePathStyle: false}}":                       "[b     p false true]",
		"{type: s3, s3: {bucket: b, url: 'http://s3', access-key: k, secret-key: s}}":          "[b  http://s3 k s  false false]",
	} {
		s := artifactConfig(t, "artifact-store: "+text).Store
		if s == nil {
			t.Errorf("%s: got no store", text)
			continue
		}
		got := fmt.Sprint([]any{s.Bucket, s.S3.Region, s.S3.Endpoint, s.S3.AccessKeyID, reveal(s.S3.SecretKey), s.S3.Profile, s.S3.Anonymous, s.S3.VirtualHosts})
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestURLRestrictionAddresses checks the keys of rules about addresses and about domains of the environment.
func TestURLRestrictionAddresses(t *testing.T) {
	t.Setenv("VEDETTE_TEST_DOMAIN", "corp")
	restrictions := func(text string) *artifacts.Restrictions {
		return artifactConfig(t, "artifacts.http: {enabled: true, accounts: [{name: a, urlRestrictions: "+text+"}]}").HTTP[0].Restrictions
	}
	r := restrictions("{rejectLocalhost: false, rejectLinkLocal: false, rejectedIps: [10.0.0.0/8], excludedDomainsFromEnvironment: [VEDETTE_TEST_DOMAIN]}")
	if !r.AllowLoopback || !r.AllowLinkLocal || len(r.RejectedNetworks) != 1 || r.RejectedNetworks[0] != netip.MustParsePrefix("10.0.0.0/8") {
		t.Errorf("got %+v", r)
	}
	defaults := restrictions("{}")
	if defaults.AllowLoopback || defaults.AllowLinkLocal || len(defaults.RejectedNetworks) != 0 {
		t.Errorf("defaults: got %+v", defaults)
	}
	if more, fewer := len(r.ExcludedPatterns), len(defaults.ExcludedPatterns); more != fewer+1 || !r.ExcludedPatterns[more-1].MatchString("git.corp") {
		t.Errorf("got %d patterns, %d by default, want one more", more, fewer)
	}
}
