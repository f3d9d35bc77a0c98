package main

import (
	"io"
	"strings"
	"testing"
)

// TestUsageErrors checks what the errors of flags and arguments tell users.
func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"scale deployment x --replicas 1.5":                 `invalid value "1.5" of --replicas: want a whole number`,
		"get pods --watch=maybe":                            `invalid value "maybe" of --watch: want true or false`,
		"rollout status deployment/x --timeout 5":           `invalid value "5" of --timeout: want a duration such as 30s or 5m`,
		"rollout undo deployment/x --to-revision a\x1b[31m": `invalid value "a\x1b[31m" of --to-revision: want a whole number`,
		"get pods --acount east":                            "unknown flag: --acount: did you mean --account?",
		"get pods --frobnicate":                             "unknown flag: --frobnicate: see vedette get --help",
		"get pods -Z":                                       "unknown shorthand flag: 'Z' in -Z: see vedette get --help",
		"get":                                               "the usage is vedette get KIND[,KIND]",
		"accounts accept":                                   "the usage is vedette accounts accept NAME",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(args))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("vedette %s: got error %v, want %q in it", args, err, want)
		}
	}
}
