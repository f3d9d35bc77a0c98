package artifacts

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// reveal returns a credential, or what is wrong with it.
func reveal(c Credential) string {
	if c == nil {
		return ""
	}
	text, err := c()
	if err != nil {
		return err.Error()
	}
	return text
}

// artifactConfig reads the groups artifacts and artifact-store of a file.
func artifactConfig(t *testing.T, text string) Config {
	t.Helper()
	var c struct {
		Artifacts Settings    `config:"artifacts"`
		Store     StoreConfig `config:"artifact-store"`
	}
	report := configfile.Parse("c.yml", []byte(text), configfile.Options{}, &c)
	c.Artifacts.Check(report.Checker().At("artifacts"))
	c.Store.Check(report.Checker().At("artifact-store"))
	if err := report.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	cfg := c.Artifacts.Config()
	cfg.Store = c.Store
	return cfg
}

// TestFilesTakePrecedenceInLogins checks the credentials of each type of account, and that files take precedence.
func TestFilesTakePrecedenceInLogins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("u:fromfile\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logins := map[string]func(Config) login{
		"github":    func(c Config) login { return c.GitHub[0].login() },
		"gitlab":    func(c Config) login { return c.GitLab[0].login() },
		"bitbucket": func(c Config) login { return c.Bitbucket[0].login() },
		"git-repo":  func(c Config) login { return c.Git[0].login() },
		"http":      func(c Config) login { return c.HTTP[0].login() },
		"helm":      func(c Config) login { return c.Helm[0].login() },
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
			got := strings.Join([]string{l.username, reveal(l.password), reveal(l.usernamePassword), reveal(l.token)}, " ")
			if got != tt.want {
				t.Errorf("%s, %s: got %q, want %q", name, tt.fields, got, tt.want)
			}
		}
	}
}

// TestEachAccountSettingCounts sets the other keys of accounts, and checks what becomes of them.
func TestEachAccountSettingCounts(t *testing.T) {
	for _, tt := range []struct {
		setting, want string
		got           func(Config) any
	}{
		{"enabled: false", "true", func(c Config) any { return c.Disabled }},
		{"http.enabled: true", "true", func(c Config) any { return c.HTTPEnabled }},
		{"github: {enabled: true, accounts: [{name: g, useContentAPI: true, githubAPIVersion: v4}]}", "[g true v4]",
			func(c Config) any {
				if len(c.GitHub) == 0 {
					return nil
				}
				return []any{c.GitHub[0].Name, c.GitHub[0].UseContentAPI, c.GitHub[0].APIVersion}
			}},
		{"git-repo: {enabled: true, accounts: [{name: g, sshPrivateKeyFilePath: /k, sshPrivateKeyPassphrase: p, sshKnownHostsFilePath: /h, " +
			"sshTrustUnknownHosts: true, allowedHosts: [x]}]}", "[g /k p /h true [x]]", func(c Config) any {
			if len(c.Git) == 0 {
				return nil
			}
			g := c.Git[0]
			return []any{g.Name, g.SSHKeyPath, reveal(g.passphrase()), g.KnownHostsPath, g.TrustUnknownHosts, g.AllowedHosts}
		}},
		{"helm: {enabled: true, accounts: [{name: h, repository: 'https://charts.example.com'}]}", "[h https://charts.example.com]",
			func(c Config) any {
				if len(c.Helm) == 0 {
					return nil
				}
				return []any{c.Helm[0].Name, c.Helm[0].Repository}
			}},
		{"gcs: {enabled: true, accounts: [{name: g, jsonPath: 'file:/k.json', endpoint: 'http://gcs'}]}", "[{g file:/k.json http://gcs}]",
			func(c Config) any { return c.GCS }},
		{"s3: {enabled: true, accounts: [{name: s, region: r, awsAccessKeyId: k, awsSecretAccessKey: s}]}", "[s  r k s]", s3Account},
		{"s3: {enabled: true, accounts: [{name: s, apiEndpoint: 'http://minio', apiRegion: a, region: r}]}", "[s http://minio a  ]", s3Account},
		{"oracle: {enabled: true, accounts: [{name: o, namespace: n, region: us-phoenix-1, userId: u, fingerprint: f, tenancyId: t, " +
			"sshPrivateKeyFilePath: /k, privateKeyPassphrase: p}]}", "[o n us-phoenix-1 u f t /k p]", func(c Config) any {
			if len(c.Oracle) == 0 {
				return nil
			}
			o := c.Oracle[0]
			return []any{o.Name, o.Namespace, o.Region, o.UserID, o.Fingerprint, o.TenancyID, o.PrivateKeyPath, o.PrivateKeyPassphrase.Reveal()}
		}},
		{"limits: {maxBytes: 1MiB, maxIndexBytes: 2MiB, maxGitObjectBytes: 3MiB, timeout: 1m, stallTimeout: 2s, connectTimeout: 3s, " +
			"maxConcurrent: 4, tempDir: /t}", "[1048576 2097152 3145728 1m0s 2s 3s 4 /t]", func(c Config) any {
			return []any{c.Limits.MaxBytes, c.Limits.MaxIndexBytes, c.Limits.MaxGitObjectBytes, c.Limits.Timeout, c.Limits.StallTimeout,
				c.Limits.ConnectTimeout, c.Limits.MaxConcurrent, c.Limits.TempDir}
		}},
		{"network: {allowedAddresses: [127.0.0.1], deniedAddresses: [10.0.0.0/8]}", "[[127.0.0.1/32] [10.0.0.0/8]]",
			func(c Config) any { return []any{c.Policy.Allowed, c.Policy.Denied} }},
	} {
		if got := fmt.Sprint(tt.got(artifactConfig(t, "artifacts: {"+tt.setting+"}"))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.setting, got, tt.want)
		}
		if got := fmt.Sprint(tt.got(artifactConfig(t, "redis: {}"))); got == tt.want {
			t.Errorf("%s: got %s without the setting, too", tt.setting, got)
		}
	}
}

func s3Account(c Config) any {
	if len(c.S3) == 0 {
		return nil
	}
	s := c.S3[0].bucketConfig()
	return []any{c.S3[0].Name, s.Endpoint, s.Region, s.AccessKeyID, reveal(s.SecretKey)}
}

// TestArtifactPassphraseCommand checks that the output of a program takes precedence.
func TestArtifactPassphraseCommand(t *testing.T) {
	program := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho printed\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := artifactConfig(t, "artifacts.git-repo: {enabled: true, accounts: [{name: g, sshPrivateKeyPassphrase: p, sshPrivateKeyPassphraseCmd: "+program+"}]}")
	if got := reveal(c.Git[0].passphrase()); got != "printed" {
		t.Errorf("got %q, want the output of the program", got)
	}
}

// TestArtifactStoreSettings checks each key of the store of large artifacts.
func TestArtifactStoreSettings(t *testing.T) {
	if c := artifactConfig(t, "redis: {}"); c.Store.Type != "" {
		t.Errorf("without a type: got %+v", c.Store)
	}
	for text, want := range map[string]string{
		"{type: s3, s3: {bucket: b, region: r, url: 'http://s3', accessKey: k, secretKey: s}}": "[b r http://s3 k s  false false]",
		"{type: s3, s3: {bucket: b, profile: p, forcePathStyle: false}}":                       "[b     p false true]",
		"{type: s3, s3: {bucket: b, url: 'http://s3', access-key: k, secret-key: s}}":          "[b  http://s3 k s  false false]",
	} {
		store := artifactConfig(t, "artifact-store: "+text).Store
		s := store.S3.bucketConfig()
		got := fmt.Sprint([]any{store.S3.Bucket, s.Region, s.Endpoint, s.AccessKeyID, reveal(s.SecretKey), s.Profile, s.Anonymous, s.VirtualHosts})
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestURLRestrictionAddresses checks the keys of rules about addresses and about domains of the environment.
func TestURLRestrictionAddresses(t *testing.T) {
	t.Setenv("VEDETTE_TEST_DOMAIN", "corp")
	compiled := func(text string) *restrictions {
		return artifactConfig(t, "artifacts.http: {enabled: true, accounts: [{name: a, urlRestrictions: "+text+"}]}").HTTP[0].URLRestrictions.compile()
	}
	r := compiled("{rejectLocalhost: false, rejectLinkLocal: false, rejectedIps: [10.0.0.0/8], excludedDomainsFromEnvironment: [VEDETTE_TEST_DOMAIN]}")
	if !r.allowLoopback || !r.allowLinkLocal || len(r.rejectedNetworks) != 1 || r.rejectedNetworks[0] != netip.MustParsePrefix("10.0.0.0/8") {
		t.Errorf("got %+v", r)
	}
	defaults := compiled("{}")
	if defaults.allowLoopback || defaults.allowLinkLocal || len(defaults.rejectedNetworks) != 0 {
		t.Errorf("defaults: got %+v", defaults)
	}
	if more, fewer := len(r.excludedPatterns), len(defaults.excludedPatterns); more != fewer+1 || !r.excludedPatterns[more-1].MatchString("git.corp") {
		t.Errorf("got %d patterns, %d by default, want one more", more, fewer)
	}
}

// TestURLRestrictionsHaveClouddriversDefaults checks that the group's keys have Clouddriver's defaults if it is there, and
// that nothing is restricted if it is not.
func TestURLRestrictionsHaveClouddriversDefaults(t *testing.T) {
	for _, tt := range []struct {
		name, restrictions, address string
		allowed                     bool
	}{
		{"no group", "", "http://service/x", true},
		{"a name without a dot", "{}", "http://service/x", false},
		{"a name", "{}", "https://example.com/x", true},
		{"an address", "{}", "http://192.168.1.1/x", false},
		{"an address that is allowed", "{rejectVerbatimIps: false}", "http://192.168.1.1/x", true},
		{"an internal name", "{}", "http://gitlab.corp.internal/x", false},
		{"internal names are allowed", "{excludedDomains: []}", "http://gitlab.corp.internal/x", true},
		{"a name that the expression matches in part", `{allowedHostnamesRegex: 'github\.com'}`, "https://github.com.evil.example/x", false},
		{"a name that the expression matches", `{allowedHostnamesRegex: '(api\.)?github\.com'}`, "https://API.github.com/x", true},
		{"another domain", `{allowedDomains: ['.*\.example\.com']}`, "https://example.org/x", false},
		{"a domain", `{allowedDomains: ['.*\.example\.com']}`, "https://git.example.com/x", true},
		{"http", "{allowedSchemes: [https]}", "http://example.com/x", false},
		{"an excluded pattern", `{extraExcludedPatterns: ['evil\..*']}`, "http://evil.example/x", false},
	} {
		file := "artifacts.http: {enabled: true, accounts: [{name: a}]}"
		if tt.restrictions != "" {
			file = "artifacts.http: {enabled: true, accounts: [{name: a, urlRestrictions: " + tt.restrictions + "}]}"
		}
		u, _ := url.Parse(tt.address)
		if err := artifactConfig(t, file).HTTP[0].URLRestrictions.compile().Check(u); (err == nil) != tt.allowed {
			t.Errorf("%s: got %v, want allowed %t", tt.name, err, tt.allowed)
		}
	}
}
