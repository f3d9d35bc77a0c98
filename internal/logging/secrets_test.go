package logging

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	password   = "hunter2-and-more"
	awkward    = "a\"b\\c\td&é €x"
	kubeconfig = `apiVersion: v1
clusters:
- cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t
users:
- name: kubernetes-admin
  user:
    token: "abcdef.0123456789"
`
	key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1234\n-----END PRIVATE KEY-----\n"
)

// TestSecretsAreMasked logs secrets in all the ways in which they may get into a line.
func TestSecretsAreMasked(t *testing.T) {
	for _, format := range []string{Text, JSON} {
		var out bytes.Buffer
		log, err := New(Config{Format: format}, &out, &out)
		if err != nil {
			t.Fatal(err)
		}
		derived := log.With("account", "prod").WithGroup("g") // before the secrets are known
		SetSecrets(log, []string{password, awkward, kubeconfig, key, "short", ""})
		for name, tt := range map[string]struct{ value, want string }{
			"an attribute":              {password, "***"},
			"within a text":             {"x" + password + "y", "x***y"},
			"twice":                     {password + password + ", " + password, "******, ***"},
			"quoted":                    {fmt.Sprintf("got %q", password), "got"},
			"in a URL":                  {"postgres://u:" + url.QueryEscape(awkward) + "@h/d", "postgres://u:***@h/d"},
			"in base64":                 {base64.StdEncoding.EncodeToString([]byte(password)), "***"},
			"with awkward characters":   {awkward, "***"},
			"the same, quoted":          {fmt.Sprintf("got %q", awkward), "got"},
			"a token of a kubeconfig":   {"Bearer abcdef.0123456789", "Bearer ***"},
			"a line of a private key":   {"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1234", "***"},
			"addresses are not secret":  {"https://10.0.0.1:6443", "https://10.0.0.1:6443"},
			"names are not secret":      {"kubernetes-admin", "kubernetes-admin"},
			"the beginning of a secret": {password[:12] + "!", password[:12] + "!"},
			"a word":                    {"a short word", "a short word"},
		} {
			out.Reset()
			derived.Error("failed", "error", errors.New(tt.value))
			line := out.String()
			if !strings.Contains(line, tt.want) || !strings.HasSuffix(line, "\n") {
				t.Errorf("%s, %s: got %s, want %s", format, name, line, tt.want)
			}
			for _, secret := range []string{password, url.QueryEscape(awkward), `td&`, `td\u0026`, "0123456789", key[40:60], base64.StdEncoding.EncodeToString([]byte(password))} {
				if strings.Contains(line, secret) {
					t.Errorf("%s, %s: got %s", format, name, line)
				}
			}
		}
	}
}

// TestSecretsInDocuments checks that each secret of a kubeconfig is masked by itself, however it is written, and
// that names and addresses stay readable.
func TestSecretsInDocuments(t *testing.T) {
	const flow = `{apiVersion: v1, clusters: [{name: prod-eu, cluster: {server: "https://10.0.0.1:6443", proxy-url: "http://me:s3cr3t-proxy@proxy.example:3128"}}], ` +
		`users: [{name: kubernetes-admin, user: {token: s3cr3t-token, password: "s3cr3t-password", client-key-data: s3cr3tClientKeyData, ` +
		`auth-provider: {name: oidc-provider, config: {id-token: s3cr3t-id, refresh-token: s3cr3t-refresh}}, ` +
		`exec: {command: aws-iam, args: [--region, eu-west-1, --token=s3cr3t-flag, --password, s3cr3t-next], env: [{name: AWS_SECRET_ACCESS_KEY, value: s3cr3t-env}, {name: AWS_REGION, value: eu-west-1}]}}}]}`
	var tree any
	if err := yaml.Unmarshal([]byte(flow), &tree); err != nil {
		t.Fatal(err)
	}
	block, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	onOneLine, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	indented, err := json.MarshalIndent(tree, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	mixed := strings.ReplaceAll(flow, ", users:", ",\n users:")
	scalars := "users:\n- user:\n    token: >-\n      s3cr3t-token\n    password: &p 's3cr3t-password'\n    other-password: *p\n"
	for name, document := range map[string]string{"flow": flow, "block": string(block), "JSON": string(onOneLine), "indented JSON": string(indented), "mixed": mixed, "scalars": scalars} {
		index := newSecretIndex([]string{document})
		secrets := []string{"s3cr3t-token", "s3cr3t-password"}
		if name != "scalars" {
			secrets = append(secrets, "s3cr3tClientKeyData", "s3cr3t-id", "s3cr3t-refresh", "s3cr3t-flag", "s3cr3t-next", "s3cr3t-env", "s3cr3t-proxy")
		}
		for _, secret := range secrets {
			if got := string(index.mask([]byte("it says " + secret + ", again"))); got != "it says ***, again" {
				t.Errorf("%s: got %s", name, got)
			}
		}
		for _, open := range []string{"prod-eu", "kubernetes-admin", "https://10.0.0.1:6443", "proxy.example", "eu-west-1", "oidc-provider", "aws-iam"} {
			if got := string(index.mask([]byte(open))); got != open {
				t.Errorf("%s: got %s for %s", name, got, open)
			}
		}
	}
}

// FuzzSecretDocument checks that no document is a problem, and that a token is found whatever is beside it.
func FuzzSecretDocument(f *testing.F) {
	for _, document := range []string{"{token: abcdef}", "token: |\n  a\n  b", "a: &a [*a, *a]", "&a {key: *a}", "[[[[[[", "? {token: x}\n: y", "a: b\n---\nc", "\x00", "{}", "--- >-"} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		newSecretIndex([]string{document})
		quoted, err := json.Marshal(map[string]string{"note": document, "token": "s3cr3t-token"})
		if err != nil {
			t.Fatal(err)
		}
		if parts := documentParts(string(quoted)); !slices.Contains(parts, "s3cr3t-token") {
			t.Errorf("got %q beside %q, want the token", parts, document)
		}
	})
}

// TestFormerSecretsAreMaskedOnceMore checks that the secrets of the call before are still masked, and those before them
// no longer.
func TestFormerSecretsAreMaskedOnceMore(t *testing.T) {
	var out bytes.Buffer
	log, err := New(Config{}, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"first-secret", "second-secret", "third-secret"} {
		SetSecrets(log, []string{secret})
	}
	log.Info("first-secret second-secret third-secret")
	if got := out.String(); !strings.Contains(got, `msg="first-secret *** ***"`) {
		t.Errorf("got %s", got)
	}
	SetSecrets(log, nil)
	SetSecrets(log, nil)
	out.Reset()
	log.Info("third-secret")
	if got := out.String(); !strings.Contains(got, "third-secret") {
		t.Errorf("got %s without secrets", got)
	}
	SetSecrets(slog.New(slog.DiscardHandler), []string{"x"}) // a logger of another package stays as it is
}

// TestSecretsWithTheSameBeginning checks that all of them are masked, however many there are.
func TestSecretsWithTheSameBeginning(t *testing.T) {
	for _, count := range []int{2, maxSamePrefix, 10 * maxSamePrefix} {
		var secrets []string
		for i := range count {
			secrets = append(secrets, fmt.Sprintf("eyJhbGciOiJSUzI1NiJ9.%d.signature", i))
		}
		index := newSecretIndex(secrets)
		for _, secret := range secrets {
			if got := string(index.mask([]byte(`token="` + secret + `" x`))); got != `token="***" x` {
				t.Fatalf("%d secrets: got %s", count, got)
			}
		}
		for prefix, forms := range index.forms {
			if len(forms) > maxSamePrefix+1 {
				t.Errorf("%d secrets: %d are compared for %s", count, len(forms), prefix)
			}
		}
	}
}

// TestLongestSecretWins checks secrets of which one is the beginning of another.
func TestLongestSecretWins(t *testing.T) {
	index := newSecretIndex([]string{"secret-token-a", "secret-token-a-and-b", "secret"})
	for line, want := range map[string]string{"secret-token-a-and-b.": "***.", "secret-token-a.": "***.", "secret-token.": "***-token.", "secre": "secre"} {
		if got := string(index.mask([]byte(line))); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// FuzzMaskLine checks that a secret never remains in a line, and that other lines stay.
func FuzzMaskLine(f *testing.F) {
	f.Add("before ", "hunter2", " after")
	f.Add("hunter", "hunter2", "2hunter2")
	f.Add("", "aaaaaaaaaaaaaaaaaaaa", "a")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		secret = strings.TrimSpace(secret)
		if len(secret) < minSecretBytes || strings.Contains(secret, "\n") || strings.Contains(secret, "*") {
			return
		}
		index := newSecretIndex([]string{secret})
		if got := string(index.mask([]byte(before + secret + after))); strings.Contains(got, secret) && !strings.Contains(strings.ReplaceAll(got, maskedPlace, ""), secret) {
			t.Errorf("got %q", got)
		}
		if other := []byte("zz"); string(index.mask(other)) != "zz" {
			t.Error("another line has changed")
		}
	})
}

// BenchmarkMaskLine measures a line with few and with many secrets.
func BenchmarkMaskLine(b *testing.B) {
	line := []byte(`time=2026-01-02T03:04:05.678Z level=INFO msg="request to the API server" account=prod-eu-1 method=GET path=/api/v1/namespaces/default/pods status=200 duration=12ms` + "\n")
	for _, count := range []int{10, 10_000} {
		var secrets []string
		for i := range count {
			secrets = append(secrets, fmt.Sprintf("%x-secret", i*7919))
		}
		index := newSecretIndex(secrets)
		b.Run(fmt.Sprintf("%d secrets", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				index.mask(line)
			}
		})
	}
}
