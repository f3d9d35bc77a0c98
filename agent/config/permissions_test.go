package config

import (
	"strings"
	"testing"
)

// TestUnreadablePermissionsRejectTheAccount checks that an account whose permissions cannot be read is left out, because
// it would be open to everyone otherwise.
func TestUnreadablePermissionsRejectTheAccount(t *testing.T) {
	for value, want := range map[string]string{
		"dev":                                 "must be a list",
		"7":                                   "must be a list",
		"[dev]":                               "must be READ, WRITE or EXECUTE with a list of roles",
		"{REED: [dev]}":                       `must be READ, WRITE or EXECUTE, got "REED"`,
		"{READ: [[dev]]}":                     "must be a role, got",
		"{READ: {dev: ops}}":                  "must be a role, got",
		"{READ: ['dev ops']}":                 "white space",
		"{READ: []}":                          "must contain at least one role",
		"[{READ: [dev]}, {read: [operator]}]": "must contain READ only once",
		"{READ: [dev], WRITE: ops}":           "",
		"{READ: 'dev, ops'}":                  "",
		"{READ: ['dev, ops']}":                "white space",
		"{READ: 'dev,,ops'}":                  "must not be empty",
		"{READ: ' dev'}":                      "white space",
		"{READ: 'dev ops,qa'}":                "white space",
		"[]":                                  "",
	} {
		c, err := parse("c.yml", []byte("kubernetes.accounts: [{name: a, permissions: "+value+"}, {name: b}]"), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(c.RejectedAccounts) > 0 {
			got = c.RejectedAccounts[0].Reason.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) || len(c.Kubernetes.Accounts)+len(c.RejectedAccounts) != 2 {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

// TestRolesWithCommas checks that one value may have several roles. As one role, whose name nobody has, they
// would lock everyone out.
func TestRolesWithCommas(t *testing.T) {
	for value, want := range map[string]string{
		"{READ: 'dev,ops'}":            "READ [dev, ops]",
		"{READ: dev , WRITE: 'a , b'}": "READ [dev], WRITE [a, b]",
		"[{READ: \"${ROLES:x,y}\"}]":   "READ [x, y]",
		"{READ: ['dev,ops']}":          "READ [dev,ops]",
	} {
		c, err := parse("c.yml", []byte("kubernetes.accounts: [{name: a, permissions: "+value+"}]"), testEnv)
		if err != nil || len(c.Kubernetes.Accounts) != 1 {
			t.Fatalf("%s: got %v, rejected %v", value, err, c.RejectedAccounts)
		}
		if got := c.Kubernetes.Accounts[0].Permissions.String(); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}
