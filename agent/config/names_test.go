package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestNamesThatChangeRequestsAreRejected checks which names of agents, zones, accounts and namespaces are accepted. Those that
// the server would reject, or that would change a request, are reported when the file is read.
func TestNamesThatChangeRequestsAreRejected(t *testing.T) {
	long, env := strings.Repeat("n", 300), envFrom("LATIN", "caf\xe9", "EMPTY", "")
	for _, tt := range []struct {
		key, value, problem string
	}{
		{"name", "with space", ""}, {"name", "дом-東京", ""}, {"name", "' DROP TABLE accounts --", ""},
		{"name", "lab ", "begin or end with a space"}, {"name", " lab", "begin or end with a space"}, {"name", "lab\u00a0", "begin or end with a space"},
		{"name", "lab,prod", "comma or a semicolon"}, {"name", "lab;x=1", "comma or a semicolon"}, {"name", "..", "part of a URL"},
		{"name", "../../etc", ""},
		{"name", long, "at most 255 bytes"}, {"name", "a\nb", "control characters"}, {"name", "\x1b[2J", "control characters"},
		{"name", "${LATIN}", "not UTF-8"}, {"name", "${EMPTY}", "must not be empty"},
		{"namespaces", "shop-1", ""}, {"namespaces", "Shop", ""},
		{"namespaces", "${EMPTY}", "names of namespaces"}, {"namespaces", "..", "names of namespaces"}, {"namespaces", "../../nodes", "names of namespaces"},
		{"namespaces", "a/b", "names of namespaces"}, {"namespaces", "a?watch=1", "names of namespaces"}, {"namespaces", "a%2Fb", "names of namespaces"},
		{"namespaces", "a\nb", "names of namespaces"}, {"namespaces", "*", "names of namespaces"}, {"namespaces", long, "names of namespaces"},
		{"omitNamespaces", "kube-system", ""}, {"omitNamespaces", "a b", "names of namespaces"},
	} {
		value := fmt.Sprintf("%q", tt.value)
		if tt.key != "name" {
			value = "[" + value + "], name: x"
		}
		file := fmt.Sprintf("kubernetes.accounts: [{kubeconfigFile: /k, %s: %s}, {name: other}]", tt.key, value)
		c, err := parse("c.yml", []byte(file), env)
		if err != nil {
			t.Errorf("%s: got error %v, want one about the account only", file, err)
			continue
		}
		reason := ""
		for _, rejected := range c.RejectedAccounts {
			reason += rejected.Reason.Error()
		}
		if (reason == "") != (tt.problem == "") || !strings.Contains(reason, tt.problem) || strings.ContainsAny(reason, "\n\x1b") || len(reason) > 500 {
			t.Errorf("%s: got %q, want %q", file, reason, tt.problem)
		}
	}
	for _, key := range []string{"agentId", "zoneId"} {
		for value, problem := range map[string]string{"agent-1": "", "дом": "", long: "at most 255 bytes", "a\nb": "control characters", "${LATIN}": "not UTF-8"} {
			_, err := parse("c.yml", fmt.Appendf(nil, "%s: %q", key, value), env)
			if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
				t.Errorf("%s %.20q: got %v, want %q", key, value, err, problem)
			}
		}
	}
}
