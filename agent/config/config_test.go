package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configfile/configtest"
	"github.com/vedette-io/vedette/internal/configfile/reference"
	"github.com/vedette-io/vedette/internal/golden"
)

func envFrom(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

var testEnv = envFrom("HOSTNAME", "agent-0", "KUBECONFIGS", "/kubeconfigs")

// TestFilesLoadAsRecorded loads each testdata/*.yml and compares the result with the .txt file
// beside it: errors, rejected accounts, notices, unused keys, settings that differ
// from their defaults, and the properties that the server gets of each account.
func TestFilesLoadAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no test files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			golden.Compare(t, strings.TrimSuffix(file, ".yml")+".txt", describe(Load(file, testEnv)))
		})
	}
}

func describe(c *Config, err error) string {
	var out strings.Builder
	if err != nil {
		return fmt.Sprintf("error (%s)\n%s\n", vedette.KindOf(err), err)
	}
	for _, r := range c.RejectedAccounts {
		fmt.Fprintf(&out, "rejected %q, index %d at %s\n%s\n", r.Name, r.Index, r.At, r.Reason)
	}
	for _, notice := range c.Notices() {
		fmt.Fprintf(&out, "notice %s\n", notice)
	}
	for _, unused := range c.Unused() {
		fmt.Fprintf(&out, "unused %s\n", unused)
	}
	for _, kv := range c.Effective() {
		if kv.From != "default" {
			fmt.Fprintf(&out, "%s\n", kv)
		}
	}
	fmt.Fprintf(&out, "insecure %v\n", c.Clouddriver.IsInsecure())
	for _, a := range c.Kubernetes.Accounts {
		properties, err := json.Marshal(a.Properties())
		fmt.Fprintf(&out, "account %s %s %v\n", a.AccountName(), properties, err)
	}
	return out.String()
}

// TestDirectoriesLoadAsRecorded loads testdata/folders/*/armory-agent.yml with its overlays and imports, and compares
// the result with result.txt beside it.
func TestDirectoriesLoadAsRecorded(t *testing.T) {
	directories, err := filepath.Glob("testdata/folders/*")
	if err != nil || len(directories) == 0 {
		t.Fatal("no test directories", err)
	}
	for _, directory := range directories {
		t.Run(filepath.Base(directory), func(t *testing.T) {
			golden.Compare(t, directory+"/result.txt", describe(Load(directory+"/armory-agent.yml", testEnv)))
		})
	}
}

func TestLaterDefaultPlacesTakePrecedence(t *testing.T) {
	root := t.TempDir()
	env := envFrom("HOSTNAME", "agent-0", "HOME", "/home/me")
	c, err := loadWithRoot(root, "", env)
	if err != nil || len(c.Kubernetes.Accounts) != 0 || len(c.Notices()) != 1 || c.Path != "" {
		t.Fatalf("without a file: got %+v, %v; want no accounts, one notice and no path", c, err)
	}
	// Each file takes precedence over all before it.
	for i, file := range []string{
		"home/me/.armory/kubesvc.yml", "home/me/.armory/armory-agent.yml", "home/me/.spinnaker/kubesvc.yaml",
		"opt/go-application/config/armory-agent.yml", "root/config/kubesvc.yml", "home/spinnaker/config/armory-agent.yaml",
		"opt/spinnaker/config/kubesvc.yml", "opt/spinnaker/config/kubesvc.yaml", "opt/spinnaker/config/kubesvc-armory.yml",
		"opt/spinnaker/config/kubesvc-local.yaml", "opt/spinnaker/config/armory-agent.yml", "opt/armory/config/kubesvc-local.yml",
		"opt/armory/config/armory-agent.yml", "opt/armory/config/armory-agent.yaml", "opt/armory/config/armory-agent-local.yml",
		"opt/vedette/config/vedette-agent.yml", "opt/vedette/config/vedette-agent-armory.yaml", "opt/vedette/config/vedette-agent-local.yml",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		account := fmt.Sprintf("account-%d", i)
		if err := os.WriteFile(path, []byte("kubernetes.accounts: [{name: "+account+"}]"), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := loadWithRoot(root, "", env)
		if err != nil || len(c.Kubernetes.Accounts) != 1 || string(c.Kubernetes.Accounts[0].Name) != account {
			t.Errorf("%s: got %+v, %v; want %s", file, c, err, account)
		}
	}
}

func TestEmptyFilesAreSkipped(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "opt/armory/config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"armory-agent.yaml": "", "armory-agent.yml": "# later", "kubesvc.yml": "zoneId: z"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := loadWithRoot(root, "", testEnv); err != nil || c.ZoneID != "z" || filepath.Base(c.Path) != "kubesvc.yml" {
		t.Errorf("got %+v, %v; want the zone of kubesvc.yml", c, err)
	}
}

func TestInvalidAccountNamesAreRejected(t *testing.T) {
	for _, tt := range []struct {
		name, quoted string
		rejected     bool
	}{
		{"spaces", `"a b"`, false},
		{"unicode", `"süd-östlich/東"`, false},
		{"SQL", `"x' OR 1=1 --"`, false},
		{"a semicolon", `"x'; DROP TABLE accounts; --"`, true},
		{"a space at the end", `"prod "`, true},
		{"a comma", `"a,prod"`, true},
		{"255 bytes", `"` + strings.Repeat("n", 255) + `"`, false},
		{"300 bytes", `"` + strings.Repeat("n", 300) + `"`, true},
		{"a line feed", `"a\nb"`, true},
		{"an escape sequence", `"a\e[31mb"`, true},
	} {
		c, err := parse("c.yml", []byte("kubernetes.accounts: [{name: "+tt.quoted+"}, {name: other}]"), testEnv)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(c.RejectedAccounts) == 1 != tt.rejected || len(c.RejectedAccounts)+len(c.Kubernetes.Accounts) != 2 {
			t.Errorf("%s: got rejected accounts %+v", tt.name, c.RejectedAccounts)
		}
		for _, r := range c.RejectedAccounts {
			if len(r.Reason.Error()) > 300 || strings.ContainsAny(r.Reason.Error(), "\n\x1b") {
				t.Errorf("%s: the reason cannot be printed: %q", tt.name, r.Reason)
			}
		}
	}
}

// TestGroupsOfOtherProducts checks that no group of another product is taken for a misspelt one of ours.
func TestGroupsOfOtherProducts(t *testing.T) {
	for _, group := range strings.Fields("appengine artifacts aws azure bastion cats cf cloudfoundry credentials dcos default docker " +
		"dockerRegistry ecs edda endpoints eureka features fiat google huaweicloud hystrix jedis lambda management okHttp okHttpClient " +
		"oracle redis resilience4j retrofit security services spectator spinnaker spring sql swagger telemetry tencentcloud titan yandex") {
		if _, err := parse("c.yml", []byte("agentId: a\n"+group+": {}"), nil); err != nil {
			t.Errorf("%s: %v", group, err)
		}
	}
}

// TestWrongValuesAreReported sets each key to values of a wrong type, range or unit. A group is not wrong where
// Spring has one.
func TestWrongValuesAreReported(t *testing.T) {
	for _, wrong := range configtest.WrongValues(Config{}) {
		c, err := parse("c.yml", []byte(wrong.File), testEnv)
		if err == nil && slices.Contains(c.UnknownKeys(), wrong.Path+".x") {
			continue
		}
		if err == nil && len(c.RejectedAccounts) == 1 {
			err = c.RejectedAccounts[0].Reason
		}
		if err == nil || !strings.Contains(err.Error(), `"`+wrong.Path) {
			t.Errorf("%s: got %v, want a problem of %s", wrong.File, err, wrong.Path)
		}
	}
}

func TestKeyStoreHint(t *testing.T) {
	for file, want := range map[string]bool{
		"server.ssl: {enabled: true}":                              false,
		"server.ssl: {enabled: true, key-store: /clouddriver.p12}": true,
	} {
		_, err := parse("c.yml", []byte(file), nil)
		if err == nil || strings.Contains(err.Error(), "convert it to PEM") != want {
			t.Errorf("%s: got %v", file, err)
		}
	}
}

func TestNamedFileMustExist(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "absent.yml"), testEnv)
	if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "absent.yml: open the file: no such file") {
		t.Errorf("got error %v, want that absent.yml does not exist", err)
	}
}

func TestAgentIDDefault(t *testing.T) {
	c, err := parse("c.yml", nil, envFrom("HOSTNAME", "pod-1"))
	if err != nil || c.AgentID != "pod-1" {
		t.Errorf("in a pod: got %+v, %v; want agentId pod-1", c, err)
	}
	a, errA := parse("c.yml", nil, nil)
	b, errB := parse("c.yml", nil, nil)
	if errA != nil || errB != nil || a.AgentID == b.AgentID || a.AgentID == "" {
		t.Errorf("outside of a pod: got %q and %q, %v, %v; want two different names", a.AgentID, b.AgentID, errA, errB)
	}
	c, err = parse("c.yml", []byte("agentId: me"), envFrom("HOSTNAME", "pod-1"))
	if err != nil || c.AgentID != "me" {
		t.Errorf("configured: got %+v, %v; want agentId me", c, err)
	}
}

func TestTLSSettingsSwitchTLSOn(t *testing.T) {
	for file, want := range map[string]bool{
		"": true,
		"clouddriver.tls.insecureSkipVerify: true":         false,
		"clouddriver.tls.cacertFile: /ca":                  false,
		"clouddriver: {insecure: true, tls.serverName: x}": true,
		"clouddriver.insecure: false":                      false,
	} {
		c, err := parse("c.yml", []byte(file), testEnv)
		if err != nil || c.Clouddriver.IsInsecure() != want {
			t.Errorf("%q: got %v, %v; want %v", file, !want, err, want)
		}
	}
}

// TestBackoffHasDefaultsAndLimits checks which pauses between connections are rejected.
func TestBackoffHasDefaultsAndLimits(t *testing.T) {
	for setting, want := range map[string]string{
		"clouddriver.backoff.baseDelay: 0":                                "clouddriver.backoff.baseDelay",
		"clouddriver.backoff: {baseDelay: 1000, maxDelay: 999}":           "clouddriver.backoff.maxDelay",
		"clouddriver.backoff.maxDelay: 9000000000000000000":               "clouddriver.backoff.maxDelay",
		"clouddriver.backoff.multiplier: 0.9":                             "clouddriver.backoff.multiplier",
		"clouddriver.backoff.jitter: 1.5":                                 "clouddriver.backoff.jitter",
		"clouddriver.backoff.baseDelay: 1s":                               "clouddriver.backoff.baseDelay",
		"kubernetes.reconnectTimeoutMs: -1":                               "kubernetes.reconnectTimeoutMs",
		"kubernetes.reconnectTimeoutMs: 3600001":                          "kubernetes.reconnectTimeoutMs",
		"{clouddriver.backoff: {baseDelay: 1, maxDelay: 86400000000001}}": "clouddriver.backoff.maxDelay",
	} {
		if _, err := parse("c.yml", []byte(setting), testEnv); err == nil || !strings.Contains(err.Error(), `"`+want+`" must be`) {
			t.Errorf("%s: got %v, want a problem of %s", setting, err, want)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	c, err := parse("c.yml", []byte(`
clouddriver: {auth: {token: hunter2, tokenCommand: {args: [hunter2]}}, tls: {clientKeyFilePassword: hunter2}}
server.ssl.keyPassword: hunter2
hub.auth: {token: hunter2, armory.secret: hunter2}
secrets.vault.password: hunter2
kubernetes.accounts: [{name: a, kubeconfigContents: hunter2}]`), testEnv)
	if err != nil || c.Kubernetes.Accounts[0].KubeconfigContents.Reveal() != "hunter2" || c.Clouddriver.Auth.Token.Reveal() != "hunter2" {
		t.Fatal(c, err)
	}
	if shown := fmt.Sprintf("%v %+v %#v", c, c, *c) + describe(c, nil); strings.Contains(shown, "hunter2") {
		t.Errorf("got a secret in the output: %s", shown)
	}
}

// TestReference checks that docs/config-agent.md and reasons.go follow the structs.
func TestReference(t *testing.T) {
	page := reference.Page{
		Title:   "Configuration of vedette-agent",
		Program: "vedette-agent",
		Root:    "../..",
		Intro: "`vedette-agent` reads the YAML file that `--config` names, or the first that it finds in the default directories, with overlays\n" +
			"for profiles and with imported files: [which files, and in which order](configuration.md). It accepts all keys of the predecessor.\n\n" +
			"- `vedette-agent check --config FILE` reports all problems, and what has no effect. With `--effective` it also prints every setting with its value and its origin.\n" +
			"- Keys may be nested (`server: {port: 8082}`) or written with dots (`server.port: 8082`).\n" +
			"- [Unknown keys](configuration.md#unknown-keys) of other products are ignored with a warning; others are errors.\n" +
			"- Environment variables override the files: `" + EnvPrefix + "CLOUDDRIVER_GRPC` sets `clouddriver.grpc`.\n" +
			"- Values may contain `${NAME:default}`, where NAME is another key or an environment variable.\n" +
			"- Values may be references to [secrets](secrets.md): `encrypted:vault!e:kv!p:spinnaker/db!k:password`.\n" +
			"- The agent uses [changes of accounts and of logging.level](configuration.md#changes-while-an-agent-runs) within 5 seconds; others need a restart.\n\n" +
			"Sizes are bytes, or have a unit (`8MiB`, `4MB`; both are powers of 1024).",
	}
	text, err := reference.Markdown(page, Config{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../docs/config-agent.md", text)
	source, err := reference.Reasons(page, Config{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "reasons.go", source)
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("fuzz.yml", data, testEnv)
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, a := range c.Kubernetes.Accounts {
			if a.Name == "" || names[string(a.Name)] {
				t.Errorf("got account name %q, want one that is neither empty nor used twice", a.Name)
			}
			names[string(a.Name)] = true
		}
		if len(c.RejectedAccounts)+len(c.Kubernetes.Accounts) != len(c.allAccounts) {
			t.Errorf("got %d valid and %d rejected accounts, want %d together",
				len(c.Kubernetes.Accounts), len(c.RejectedAccounts), len(c.allAccounts))
		}
		describe(c, err)
		_ = configfile.Keys(c)
	})
}

func TestMissingTLSFilesAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"": "",
		"clouddriver.tls.insecureSkipVerify: true":                "",
		"clouddriver.tls.cacertFile: /absent/ca.pem":              "the file /absent/ca.pem does not exist",
		"clouddriver.tls.clientCertFile: /absent/c.pem":           "the file /absent/c.pem does not exist",
		"server.ssl: {enabled: true, certFile: /absent/s.pem}":    "the file /absent/s.pem does not exist",
		"server.ssl: {enabled: false, certFile: /absent/s.pem}":   "",
		"clouddriver: {insecure: true, tls.cacertFile: /absent/}": "",
	} {
		c, err := parse("c.yml", []byte(file), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Clouddriver.TLSConfig()
		if (out == nil) != (c.Clouddriver.IsInsecure() || err != nil) {
			t.Errorf("%s: got TLS configuration %v and error %v, want a configuration exactly if TLS is on and the error is nil", file, out, err)
		}
		if err == nil {
			_, err = c.Server.SSL.TLSConfig()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// parse reads a configuration from data.
func parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	return decode(configfile.ReadData(name, data, options(env), Config{}), nil).validate(env)
}
