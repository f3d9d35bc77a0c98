package configfile

import (
	"errors"
	"strings"
	"testing"
)

// publicAccount is an entry of a list of a sample configuration.
type publicAccount struct {
	Name     string `config:"name"`
	Insecure bool   `config:"insecure"`
}

type publicConfig struct {
	Auth struct {
		Token Secret `config:"token,alias=bearerToken"`
		Port  int    `config:"port"`
	} `config:"auth"`
	Accounts []publicAccount `config:"accounts"`
}

// TestProblemsAreShownWithoutValues checks which part of a problem remains for readers who must not see values.
func TestProblemsAreShownWithoutValues(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"a value", "auth.port: hunter2", `c.yml:1:12: "auth.port" must be a whole number, got "********"`},
		{"a value with quotes", `auth.port: 'a"hunter2"b\'`, `c.yml:1:12: "auth.port" must be a whole number, got "********"`},
		{"a long value", "auth.port: " + strings.Repeat("hunter2", 20), `c.yml:1:12: "auth.port" must be a whole number, got "********"`},
		{"a value in a list", "accounts: [{name: a}, {name: b, insecure: hunter2}]", `c.yml:1:43: "accounts[1].insecure" must be true or false, got "********"`},
		{"a value as a key", "auth: {token:hunter2}", `c.yml:1:8: unknown key "auth.********"`},
		{"a misspelt key", "auth: {tokem: hunter2}", `c.yml:1:8: unknown key "auth.********": did you mean "token"?`},
		{"an alias of a key", "auth: {bearerToken: [hunter2]}", `c.yml:1:21: "auth.token" must be a single value, got a list`},
		{"a value like an alias", "auth: {token: *hunter2}", `c.yml:1: this is not valid YAML: a value begins with *`},
		{"a value like a tag", "auth: {token: !hunter2 x}", `c.yml:1:15: "auth.token" has a YAML tag, which is not supported`},
		{"an unknown placeholder", "auth: {token: '${hunter}'}", `c.yml:1:15: "auth.token": ${hunter} is neither a key of the configuration`},
		{"two problems", "auth: {port: 'x'}\naccounts: [{name: a, insecure: hunter2}]", "got \"********\"\nc.yml:2:32: \"accounts[0].insecure\""},
	} {
		var c publicConfig
		err := Parse("c.yml", []byte(tt.file), Options{}, &c).Err()
		if err == nil {
			t.Errorf("%s: got no error", tt.name)
			continue
		}
		if got := WithoutValues(err, &c); !strings.Contains(got, tt.want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// FuzzWithoutValues checks that no value remains, whatever it is.
func FuzzWithoutValues(f *testing.F) {
	for _, seed := range []string{"hunter2", `a"b`, "a\\", "'x", "auth.zebra", "a\nb", "[", "{x", "\xff", "…"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		const secret = "zebra-7"
		var c publicConfig
		report := Report{}
		report.Add(Position{File: "c.yml"}, "auth.port", "%q must be an integer, got %s", "auth.port", quote(value+secret))
		if got := WithoutValues(errors.Join(report.Err()), &c); strings.Contains(got, secret) {
			t.Errorf("got %s", got)
		}
	})
}
