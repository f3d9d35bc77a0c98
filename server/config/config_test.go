package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configfile/configtest"
	"github.com/vedette-io/vedette/internal/configfile/reference"
	"github.com/vedette-io/vedette/internal/golden"
)

func testEnv(name string) (string, bool) {
	value, ok := map[string]string{"DB_PASSWORD": "hunter2"}[name]
	return value, ok
}

// TestFilesLoadAsRecorded loads each testdata/*.yml and compares the result with the .txt file beside it. The
// result must not contain a password.
func TestFilesLoadAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no test files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := Load(file, testEnv)
			got := describe(c, err)
			if strings.Contains(got, "hunter2") {
				t.Errorf("the result contains a password:\n%s", got)
			}
			if printed := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(printed, "hunter2") {
				t.Errorf("the result contains a password:\n%s", printed)
			}
			golden.Compare(t, strings.TrimSuffix(file, ".yml")+".txt", got)
		})
	}
}

func describe(c *Config, err error) string {
	if err != nil {
		return fmt.Sprintf("error (%s)\n%s\n", vedette.KindOf(err), err)
	}
	var out strings.Builder
	for _, warning := range c.Warnings() {
		fmt.Fprintf(&out, "warning %s\n", warning)
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
	fmt.Fprintf(&out, "database %s\nREST %s\ngRPC %s\n", c.Database(), c.RESTListen().Address, c.GRPCListen().Address)
	if metrics := c.MetricsListen().Address; metrics != "" {
		fmt.Fprintf(&out, "metrics %s\n", metrics)
	}
	return out.String()
}

func TestDefaultsApplyWithoutAFile(t *testing.T) {
	c, err := loadFrom(t.TempDir(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Cache.Kinds, vedette.DefaultKinds) {
		t.Errorf("the default of cache.kinds differs from vedette.DefaultKinds: %v", c.Cache.Kinds)
	}
	if c.Database().Reveal() != "sqlite:/var/lib/vedette/vedette.db" || c.Accounts.Grace != 10*time.Minute || c.Agents.Server.Heartbeat != 3*time.Second {
		t.Errorf("got %s, %s, %s", c.Database(), c.Accounts.Grace, c.Agents.Server.Heartbeat)
	}
	if len(c.Notices()) != 3 || len(c.Warnings()) != 0 {
		t.Errorf("got notices %q and warnings %q, want a notice about the missing file and one about each port", c.Notices(), c.Warnings())
	}
}

func TestLaterFilesTakePrecedence(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "opt/vedette/config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		file, content string
		port          int
	}{
		{"vedette-server.yml", "server.port: 1", 1},
		{"vedette-server.yaml", "", 1},
		{"vedette-server.yaml", "server.port: 2", 2},
		{"vedette-server-armory.yml", "server.port: 3", 3},
		{"vedette-server-local.yml", "server.port: 4", 4},
	} {
		if err := os.WriteFile(filepath.Join(dir, step.file), []byte(step.content), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := loadFrom(root, "", nil)
		if err != nil || c.Server.Port != step.port {
			t.Errorf("%s: got %+v, %v", step.file, c, err)
		}
	}
}

// TestPrefixesOfPluginKeysAreEqual checks that the keys of the predecessor's plugin mean the same below armory.kubesvc,
// below kubesvc and without a prefix.
func TestPrefixesOfPluginKeysAreEqual(t *testing.T) {
	const plugin = `
cluster: local
cluster-kubernetes.useDNS: true
grpc.server: {port: 9092, address: 127.0.0.1}
cache: {cacheKinds: [Pod], cacheDefaults: [Job], operationWaitMs: 45000, accountCleanupFrequencySeconds: 60, cleanDataWithUnusedAccounts: false}
operations.retry: {maxRetries: 3, backoffMs: 1500}
jobs.operation-history.purge: {weeks: 3, cron: "0 0 0 * * 0"}
heartbeat: {period: 60}
dynamicAccounts.enabled: false
runtime.defaults.onlySpinnakerManaged: true
`
	indent := func(prefix string) string { return prefix + strings.ReplaceAll(plugin, "\n", "\n  ") }
	for name, file := range map[string]string{"without a prefix": plugin, "kubesvc": indent("kubesvc:"), "armory.kubesvc": indent("armory.kubesvc:")} {
		c, err := parse("kubesvc.yml", []byte(file), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		timeout := c.Tasks.Timeout
		switch {
		case c.GRPC.Server.Port != 9092, timeout != 45*time.Second, c.Accounts.Grace != time.Minute, c.Accounts.RemoveData,
			!slices.Equal(c.Cache.Kinds, []string{"Pod"}), !slices.Equal(c.Kubesvc.Cache.CacheDefaults, []string{"Job"}),
			c.Kubesvc.Operations.AgentWait() != 4500*time.Millisecond, c.History.KeepHistory != 3*7*24*time.Hour,
			len(c.UnknownKeys()) > 0:
			t.Errorf("%s: got %+v, unknown keys %q", name, c, c.UnknownKeys())
		}
	}
}

func TestWrongPluginKeysAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"cache: {cacheAll: true, cacheOmitKinds: [Pod]}":     `c.yml:1:41: "cache.omitKinds" cannot be combined with "cache.all"`,
		"kubesvc.cache.operationWaitMs: 5s":                  "",
		"kubesvc.cache.operationWaitMs: 500":                 `c.yml:1:32: "tasks.timeout" must be 1s or more, got 500ms`,
		"kubesvc.cache.operationWaitMs: soon":                `"tasks.timeout" must be a duration like 10m or a number of seconds, got "soon"`,
		"{cache.operationWaitMs: 5000, tasks.timeout: 5s}":   `"tasks.timeout" is set twice`,
		"kubesvc.operations.retry: {maxRetries: -1}":         `"kubesvc.operations.retry.maxRetries" must be from 0 to 1000, got -1`,
		"kubesvc.operations.retry: {backoffMs: 9999999}":     `"kubesvc.operations.retry.backoffMs" must be from 0 to 600000`,
		"history.maxBytes: 1MiB":                             `"history.maxBytes" must be 16MiB or more, got 1048576 bytes`,
		"jobs.operation-history.purge.weeks: 0":              `"history.keep" must be 1h or more, got 0s`,
		"jobs.operation-history.purge.weeks: 99999999999999": `"history.keep" must be a duration`,
		"kubesvc.cache.cacheKindz: []":                       `unknown key "kubesvc.cache.cacheKindz"`,
		"operations.threads: 7":                              "",
	} {
		_, err := parse("c.yml", []byte(file), nil)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// TestGroupsOfOtherProducts checks that no group of another product is taken for a misspelt one of ours.
func TestGroupsOfOtherProducts(t *testing.T) {
	for _, group := range strings.Fields("appengine artifacts aws azure bastion cats cf cloudfoundry credentials dcos default docker " +
		"dockerRegistry ecs edda endpoints eureka features fiat google huaweicloud hystrix jedis lambda management okHttp okHttpClient " +
		"oracle redis resilience4j retrofit security services spectator spinnaker spring sql swagger telemetry tencentcloud titan yandex") {
		if _, err := parse("c.yml", []byte(group+": {}"), nil); err != nil {
			t.Errorf("%s: %v", group, err)
		}
	}
}

// TestWrongValuesAreReported sets each key to values of a wrong type, range or unit. A group is not wrong where
// Spring has one.
func TestWrongValuesAreReported(t *testing.T) {
	for _, wrong := range configtest.WrongValues(Config{}) {
		c, err := parse("c.yml", []byte(wrong.File), nil)
		if err == nil && slices.Contains(c.UnknownKeys(), wrong.Path+".x") {
			continue
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

func TestPlaintextListensOnLoopback(t *testing.T) {
	const (
		restTLS         = "server.ssl: {enabled: true, certFile: c}\n"
		grpcTLS         = "grpc.server.security: {enabled: true, certificateChain: c, privateKey: k}\n"
		unauthenticated = "grpc.server.allowUnauthenticated: true\n"
	)
	for _, tt := range []struct {
		name, file, rest, grpc string
		notices, warnings      int
	}{
		{"loopback by default", "", "127.0.0.1:7002", "127.0.0.1:9091", 2, 0},
		{"TLS opens all addresses", unauthenticated + restTLS + grpcTLS, ":7002", ":9091", 0, 2},
		{"* means all addresses", unauthenticated + "server.address: '*'\ngrpc.server.address: '*'", ":7002", ":9091", 0, 2},
		{"one address", "server.address: 10.0.0.1\ngrpc.server.address: ::1", "10.0.0.1:7002", "[::1]:9091", 0, 1},
		{"localhost", "server.address: localhost\ngrpc.server.address: LOCALHOST", "localhost:7002", "LOCALHOST:9091", 0, 0},
		{"REST and gRPC differ", "server: {address: '[::1]', port: 1}\ngrpc.server.port: 2", "[::1]:1", "127.0.0.1:2", 1, 0},
		{"TLS on the loopback address", "server.address: 127.0.0.1\ngrpc.server.address: 127.0.0.1\n" + restTLS + grpcTLS, "127.0.0.1:7002", "127.0.0.1:9091", 0, 0},
	} {
		c, err := parse("c.yml", []byte(tt.file), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		rest, grpc := c.RESTListen().Address, c.GRPCListen().Address
		if rest != tt.rest || grpc != tt.grpc || len(c.Notices()) != tt.notices || len(c.Warnings()) != tt.warnings {
			t.Errorf("%s: got %s and %s, notices %q, warnings %q", tt.name, rest, grpc, c.Notices(), c.Warnings())
		}
	}
}

// TestOpenPortsNeedAuthentication checks that a configuration does not let any client register accounts by mistake.
func TestOpenPortsNeedAuthentication(t *testing.T) {
	const tls = "grpc.server.security: {enabled: true, certificateChain: c, privateKey: k, "
	for _, tt := range []struct {
		name, file string
		refused    bool
	}{
		{"plaintext on all addresses", "grpc.server.address: '*'", true},
		{"plaintext on one address", "grpc.server.address: 10.0.0.1", true},
		{"a name that may be any address", "grpc.server.address: vedette.example.com", true},
		{"the Scale Agent's key", "kubesvc.grpc.server.address: '*'", true},
		{"TLS without client certificates", tls + "clientAuth: NONE}", true},
		{"certificates that are not verified", tls + "clientAuth: any}", true},
		{"optional certificates", tls + "clientAuth: OPTIONAL, trustCertCollection: t}", true},
		{"required certificates", tls + "clientAuth: REQUIRE, trustCertCollection: t}", false},
		{"explicitly allowed", "grpc.server: {address: '*', allowUnauthenticated: true}", false},
		{"explicitly allowed by the Scale Agent's key", "armory.kubesvc.grpc.server: {address: '*', allowUnauthenticated: true}", false},
		{"the loopback address", "grpc.server.address: 127.0.0.1", false},
	} {
		_, err := parse("c.yml", []byte(tt.file), nil)
		if refused := err != nil && strings.Contains(err.Error(), "grpc.server.allowUnauthenticated"); refused != tt.refused || !refused && err != nil {
			t.Errorf("%s: got error %v", tt.name, err)
		}
	}
}

func TestDatabaseURLsAreConvertedAndMasked(t *testing.T) {
	tests := []struct{ name, raw, want, printed, err string }{
		{"our form is unchanged", "postgres://u:hunter2@h:5432/d?sslmode=require", "postgres://u:hunter2@h:5432/d?sslmode=require", "postgres://u:********@h:5432/d?sslmode=require", ""},
		{"a password in a parameter", "postgres://u@h/d?sslmode=hunter2&sslpassword=hunter2", "postgres://u:p%40ss@h/d?sslmode=hunter2&sslpassword=hunter2", "postgres://u:********@h/d?********", ""},
		{"user and password are added", "mysql://h/d", "mysql://user:p%40ss@h/d", "mysql://user:********@h/d", ""},
		{"MariaDB speaks MySQL", "jdbc:mariadb://h:3306/d", "mysql://user:p%40ss@h:3306/d", "mysql://user:********@h:3306/d", ""},
		{"SQLite", "sqlite:/data/v.db", "sqlite:/data/v.db", "sqlite:/data/v.db", ""},
		{"useSSL prefers TLS", "jdbc:mysql://h/d?useSSL=true&serverTimezone=UTC", "mysql://user:p%40ss@h/d?tls=preferred", "mysql://user:********@h/d?tls=preferred", ""},
		{"useSSL with verification", "jdbc:mysql://h/d?useSSL=true&verifyServerCertificate=true", "mysql://user:p%40ss@h/d?tls=true", "mysql://user:********@h/d?tls=true", ""},
		{"no TLS", "jdbc:mysql://h/d?useSSL=false", "mysql://user:p%40ss@h/d?tls=false", "mysql://user:********@h/d?tls=false", ""},
		{"sslMode wins", "jdbc:mysql://h/d?useSSL=false&sslMode=verify-full", "mysql://user:p%40ss@h/d?tls=true", "mysql://user:********@h/d?tls=true", ""},
		{"PostgreSQL's ssl is verify-full", "jdbc:postgresql://h/d?ssl=true&currentSchema=s", "postgres://user:p%40ss@h/d?search_path=s&sslmode=verify-full", "postgres://user:********@h/d?sslmode=verify-full&********", ""},
		{"user and password as parameters", "jdbc:postgresql://h/d?user=x&password=hunter2", "postgres://user:p%40ss@h/d", "postgres://user:********@h/d", ""},
		{"an unknown sslMode", "jdbc:mysql://h/d?sslMode=hunter2", "", "", "unknown value of sslMode"},
		{"another database", "jdbc:oracle:thin:hunter2@h", "", "", errVariant.Error()},
		{"many hosts", "jdbc:mysql://h1,h2/d", "", "", errVariant.Error()},
		{"a driver's variant", "jdbc:mysql:aurora://h/d", "", "", errVariant.Error()},
		{"not a URL", "hunter2", "", "", errInvalidURL.Error()},
		{"a broken URL", "postgres://u:hunter2%zz@h/d", "", "", errInvalidURL.Error()},
		{"no host", "mysql:///d", "", "", errNoHost.Error()},
		{"no database name", "mysql://u:hunter2@h", "", "", errNoName.Error()},
		{"SQLite without a file", "sqlite:", "", "", errNoName.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := databaseURL(tt.raw, "user", "p@ss")
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got %s, error %v", got, err)
				}
				return
			}
			if err != nil || got.Reveal() != tt.want || got.String() != tt.printed {
				t.Errorf("got %s, masked %s, error %v", got.Reveal(), got, err)
			}
		})
	}
}

func FuzzDatabaseURL(f *testing.F) {
	f.Add("jdbc:mysql://h:3306/d?useSSL=true")
	f.Add("postgres://u:p@h/d?sslmode=require")
	f.Fuzz(func(t *testing.T, raw string) {
		const secret = "qZxV-7k"
		got, _, err := databaseURL(raw, "user", secret)
		if strings.Contains(got.String(), secret) || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the result contains the password: %s, %v", got, err)
		}
		_ = NewDatabaseURL(raw).String()
	})
}

// TestReference checks that docs/config-server.md matches the structs.
func TestReference(t *testing.T) {
	page := reference.Page{
		Title:   "Configuration of vedette-server",
		Program: "vedette-server",
		Root:    "../..",
		Intro: "`vedette-server` reads the YAML file that `--config` names, or `/opt/vedette/config/vedette-server.yaml` or `.yml`, with overlays\n" +
			"for profiles and with imported files: [which files, and in which order](configuration.md). Without a file, the defaults apply.\n\n" +
			"- `vedette-server check --config FILE` reports all problems, and what has no effect. With `--effective` it also prints every setting with its value and its origin.\n" +
			"- Keys may be nested (`server: {port: 7002}`) or written with dots (`server.port: 7002`).\n" +
			"- [Unknown keys](configuration.md#unknown-keys) of other products are ignored with a warning; others are errors.\n" +
			"- Environment variables override the files: `" + EnvPrefix + "SQL_PASSWORD` sets `sql.password`.\n" +
			"- Values may contain `${NAME:default}`, where NAME is another key or an environment variable.\n" +
			"- Values may be references to [secrets](secrets.md): `encrypted:vault!e:kv!p:spinnaker/db!k:password`.\n" +
			"- The server uses [changes of some settings](configuration.md#changes-while-a-server-runs) at once; others need a restart.\n" +
			"- The file may be Clouddriver's or one of the [predecessor's plugin](configuration.md#the-plugins-keys).\n\n" +
			"Sizes are bytes, or have a unit (`8MiB`, `4MB`; both are powers of 1024). Durations have a unit (`30s`, `10m`, `14d`, `2w`, `PT30S`) or are seconds.",
	}
	text, err := reference.Markdown(page, Config{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../docs/config-server.md", text)
	source, err := reference.Reasons(page, Config{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "reasons.go", source)
}

// parse reads a configuration from data.
func parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	return decode(configfile.ReadData(name, data, options(env), Config{}), nil).finish()
}
