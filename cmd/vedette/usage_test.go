package main

import (
	"io"
	"strings"
	"testing"
)

// TestUsageErrorsSayWhatIsWanted checks what the errors of flags and arguments tell users.
func TestUsageErrorsSayWhatIsWanted(t *testing.T) {
	for args, want := range map[string]string{
		"scale deployment x --replicas 1.5":                 `invalid value "1.5" of --replicas: want a whole number`,
		"get pods --watch=maybe":                            `invalid value "maybe" of --watch: want true or false`,
		"rollout status deployment/x --timeout 5":           `invalid value "5" of --timeout: want a duration such as 30s or 5m`,
		"rollout undo deployment/x --to-revision a\x1b[31m": `invalid value "a\x1b[31m" of --to-revision: want a whole number`,
		"get pods --acount east":                            "unknown flag: --acount: did you mean --account?",
		"get pods --frobnicate":                             "unknown flag: --frobnicate: see vedette get --help",
		"get pods -Z":                                       "unknown shorthand flag: 'Z' in -Z: see vedette get --help",
		"get":                                               "the usage is vedette get KIND[,KIND]",
		"get pods --raw /":                                  "unknown flag: --raw, which is a flag of kubectl: `curl` and the REST API, `/vedette/v1`",
		"get -k .":                                          "unknown shorthand flag: 'k' in -k, which is a flag of kubectl: `kustomize build DIRECTORY | vedette COMMAND -f -`",
		"get pods --request-timeout 5":                      "unknown flag: --request-timeout, which is a flag of kubectl: `--timeout`",
		"frobnicate":                                        `unknown command "frobnicate" for "vedette": see vedette --help`,
		"gett pods":                                         `unknown command "gett" for "vedette": did you mean get or set?`,
		"completion csh":                                    `unknown command "csh" for "vedette completion": use bash, fish, powershell or zsh`,
		"completion bash x":                                 `unexpected argument "x": the usage is vedette completion bash`,
		"config view":                                       `unknown command "view" for "vedette config": see vedette config --help`,
		"rollout stat deployment/x":                         `unknown command "stat" for "vedette rollout": did you mean status?`,
		"create deployment x":                               "unexpected argument \"deployment\": vedette create takes files only, by `-f`: write other objects with `kubectl create",
		"apply -f x --validate strict":                      `unexpected argument "strict": a value of --validate follows an equals sign (--validate=VALUE), and the usage is vedette apply -f`,
		"ops list x":                                        `unexpected argument "x": the usage is vedette ops list`,
		"scale app-0 --replicas 3 --account a":              "no app-0 selected: use TYPE NAME, TYPE/NAME, -l SELECTOR or --all",
		"accounts accept":                                   "the usage is vedette accounts accept NAME",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(args))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := execute(t.Context(), root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("vedette %s: got error %v, want %q in it", args, err, want)
		}
	}
}
