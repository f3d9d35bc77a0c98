package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// clouddriverArtifacts are all keys as they are in the configuration of a Clouddriver.
const clouddriverArtifacts = `
artifacts:
  github: {enabled: true, accounts: [{name: gh, token: "${GH_TOKEN}", useContentAPI: true, urlRestrictions: {allowedHostnamesRegex: 'api\.github\.com'}}]}
  gitlab: {enabled: true, accounts: [{name: gl, tokenFile: /etc/gl-token}]}
  bitbucket: {enabled: true, accounts: [{name: bb, username: u, password: p4ss}]}
  gitrepo: {enabled: true, cloneRetentionMinutes: 5, accounts: [{name: git, sshPrivateKeyFilePath: /k, sshTrustUnknownHosts: true, allowedHosts: [github.com]}]}
  http: {enabled: true, accounts: []}
  helm: {enabled: true, accounts: [{name: charts, repository: "https://charts.example.com/stable"}]}
  gcs: {enabled: true, accounts: [{name: gcs, jsonPath: /key.json}]}
  s3: {enabled: true, maxConnections: 50, accounts: [{name: s3, apiEndpoint: "http://minio:9000", apiRegion: here, region: there, awsAccessKeyId: k, awsSecretAccessKey: s}]}
  oracle: {enabled: true, accounts: [{name: oci, namespace: n, region: us-phoenix-1, userId: u, fingerprint: f, tenancyId: t, sshPrivateKeyFilePath: /k}]}
  templates: []
  limits: {maxBytes: 1GiB, timeout: 5m}
  network: {allowedAddresses: [127.0.0.1, "fd00::/8"], deniedAddresses: [10.1.2.3/8]}
artifact-store: {type: s3, s3: {enabled: true, bucket: store, url: "http://seaweed:8333"}}
`

func TestArtifactAccountsAreConverted(t *testing.T) {
	c, err := parse("vedette-server.yml", []byte(clouddriverArtifacts), func(name string) (string, bool) { return "t0ken", name == "GH_TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.ArtifactConfig()
	got := []int{len(cfg.GitHub), len(cfg.GitLab), len(cfg.Bitbucket), len(cfg.Git), len(cfg.Helm), len(cfg.GCS), len(cfg.S3), len(cfg.Oracle)}
	if want := slices.Repeat([]int{1}, 8); !slices.Equal(got, want) {
		t.Errorf("got %v accounts of each type, want one of each", got)
	}
	if token := cfg.GitHub[0].Token.Reveal(); token != "t0ken" {
		t.Errorf("got token %q", token)
	}
	if cfg.Store.S3.Bucket != "store" {
		t.Errorf("got store %+v", cfg.Store)
	}
	if cfg.Limits.MaxBytes != 1<<30 || cfg.Limits.Timeout != 5*time.Minute || cfg.Limits.MaxConcurrent != 16 {
		t.Errorf("got limits %+v", cfg.Limits)
	}
	for address, allowed := range map[string]bool{"127.0.0.1": true, "127.0.0.2": false, "10.200.0.1": false, "fd00:ec2::254": true} {
		if err := cfg.Policy.Check(netip.MustParseAddr(address)); (err == nil) != allowed {
			t.Errorf("%s: got %v, want allowed %t", address, err, allowed)
		}
	}
	if strings.Contains(fmt.Sprint(c.Effective()), "t0ken") || strings.Contains(fmt.Sprint(c.Effective()), "p4ss") {
		t.Error("the effective settings show a secret")
	}
}

func TestInvalidArtifactSettingsAreNamed(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"an account without a name", "artifacts.github: {enabled: true, accounts: [{token: x}]}", `"artifacts.github.accounts[0]" must have a name`},
		{"a name twice", "artifacts.s3: {enabled: true, accounts: [{name: a}, {name: a}]}", `has the name "a", which an account before it has`},
		{"no repository", "artifacts.helm: {enabled: true, accounts: [{name: a}]}", "must be a URL"},
		{"an endpoint without a scheme", "artifacts.s3: {enabled: true, accounts: [{name: a, apiEndpoint: 'minio:9000'}]}", "must be a URL"},
		{"a lookahead", "artifacts.http: {enabled: true, accounts: [{name: a, urlRestrictions: {allowedHostnamesRegex: '(?!x).*'}}]}", "no lookarounds"},
		{"no address", "artifacts.network.allowedAddresses: [localhost]", "must list addresses"},
		{"no time", "artifacts.limits.timeout: 0", "must be from 1s to 24h"},
		{"an unknown key", "artifacts.github.acounts: []", `did you mean "accounts"?`},
		{"another store", "artifact-store: {type: gcs}", `must be s3, got "gcs"`},
		{"a store without a bucket", "artifact-store: {type: s3}", `"artifact-store.s3.bucket" is missing`},
		{"a secret reference", "artifacts.github: {enabled: true, accounts: [{name: a, token: 'encrypted:s3!r:x'}]}", "encrypted:s3!r:x lacks the parameter b"},
	} {
		_, err := parse("c.yml", []byte(tt.file), nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestRiskyArtifactSettingsAreNoticed checks that operators learn what is risky, and what is not used.
func TestRiskyArtifactSettingsAreNoticed(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"credentials for any host", "artifacts.gitlab: {enabled: true, accounts: [{name: a, token: x}]}", "its credentials are sent to whatever host a pipeline names"},
		{"accounts of a type that is not enabled", "artifacts.gitlab: {accounts: [{name: a, token: x}]}", "artifacts.gitlab.enabled is not true"},
		{"no credentials", "artifacts.gitlab: {enabled: true, accounts: [{name: a}]}", ""},
		{"restricted", "artifacts.gitlab: {enabled: true, accounts: [{name: a, token: x, urlRestrictions: {}}]}", ""},
	} {
		c, err := parse("c.yml", []byte(tt.file), nil)
		if err != nil {
			t.Fatal(err)
		}
		var about []string
		for _, notice := range c.Notices() {
			if strings.Contains(notice, "artifacts.") {
				about = append(about, notice)
			}
		}
		got := strings.Join(about, "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
