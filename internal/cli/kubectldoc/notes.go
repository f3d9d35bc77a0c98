package kubectldoc

import "strings"

// FlagNote returns what vedette has instead of a flag of kubectl; empty if there is nothing to say.
func FlagNote(path, flag string) string {
	note, _ := noteOf(path, flag)
	if note == "" {
		note, _ = noteOf("", flag)
	}
	return strings.ReplaceAll(note, `\|`, "|") // which a table in Markdown needs
}

// noteOf returns the explanation of a flag of a command, or else that of the flag in all commands, and its key.
func noteOf(path, flag string) (note, key string) {
	keys := []string{path + " --" + flag, "* --" + flag}
	if path == "" {
		keys = []string{"--" + flag}
	}
	for _, key := range keys {
		if note := notes[key]; note != "" {
			return note, key
		}
	}
	return "", ""
}

// isOfAll reports whether an explanation is for all commands: it holds for those that do not have the flag.
func isOfAll(key string) bool { return strings.HasPrefix(key, "* ") }

// notes explain flags that differ or are not there: of one command ("get --raw"), of all commands that lack them ("* --kustomize"),
// or of the flags that all commands of kubectl have ("--as").
var notes = map[string]string{
	"* --kustomize":                           "`kustomize build DIRECTORY \\| vedette COMMAND -f -`",
	"* --show-managed-fields":                 "managed fields do not leave the cluster",
	"* --template":                            "only `get` and `events` have templates: use `-o json` and `jq` here",
	"* --allow-missing-template-keys":         "only `get` and `events` have templates",
	"* --field-manager":                       "fixed: agents use the names that kubectl uses by default",
	"* --local":                               "`vedette` changes objects in clusters only: edit the file instead",
	"* --raw":                                 "`curl` and the REST API, `/vedette/v1`",
	"* --subresource":                         "`vedette scale` for `scale`; a `status` cannot be changed",
	"* --save-config":                         "`vedette apply` writes the annotation",
	"apply --force":                           "`vedette replace --force`",
	"apply --grace-period":                    "pods that `--prune` deletes have the grace period of their own specs",
	"apply --openapi-patch":                   "the agent reads the schema of the kind from the cluster",
	"apply --overwrite":                       "always on: the fields of the manifest replace those of the cluster",
	"apply --subresource":                     "a `status` cannot be changed",
	"apply --validate":                        "the default is the agent's `kubernetes.fieldValidation`",
	"apply --prune":                           "also finds and deletes objects that were applied server-side",
	"create --edit":                           "edit the file before `vedette create -f FILE`",
	"create --raw":                            "`POST /vedette/v1/operations` with the verb `apply` and the strategy `create`",
	"create --windows-line-endings":           "there is no `--edit`",
	"delete --interactive":                    "`--dry-run=server` shows what would be deleted",
	"delete --raw":                            "`vedette delete KIND NAME`",
	"diff --concurrency":                      "fixed: eight accounts at a time",
	"diff --prune":                            "`vedette apply --prune --dry-run=server`",
	"diff --prune-allowlist":                  "`vedette apply --prune --dry-run=server`",
	"diff --show-secrets":                     "the data of Secrets does not leave the cluster",
	"describe --chunk-size":                   "accepted without effect: agents read pages of 500",
	"events --chunk-size":                     "accepted without effect: agents read pages of 500",
	"events --for":                            "with `-A`, only for kinds that are part of Kubernetes",
	"get --chunk-size":                        "0 asks for as many objects as the server sends at once, which are at most 5000",
	"get --field-selector":                    "all kinds can be selected by `metadata.name` and `metadata.namespace`; Pods, Nodes, Namespaces, Services, Jobs and ReplicaSets also by the other fields that API servers know. Any other field is sent to the clusters, which reject it if they do not know it, and cannot be combined with `--watch`",
	"get --filename":                          "no URLs: `curl -sSL URL \\| vedette get -f -`",
	"get --output":                            "no `kyaml`; `name` prints ACCOUNT/KIND/NAMESPACE/NAME",
	"get --output-watch-events":               "in JSON and YAML, an object that was deleted has only its kind, namespace and name",
	"get --raw":                               "`curl` and the REST API, `/vedette/v1`",
	"get --server-print":                      "the server always fills the table, from what agents report",
	"get --sort-by":                           "sorts the objects of all accounts as one list",
	"get --subresource":                       "always an error that says what to use: agents report whole objects, with their status",
	"get --watch":                             "of one kind; Events are read every two seconds",
	"logs --ignore-errors":                    "always on: a log that fails does not end the others",
	"logs --insecure-skip-tls-verify-backend": "the API server verifies the certificate of the kubelet",
	"logs --pod-running-timeout":              "an error names the pod if it has not started: `vedette wait` waits for it",
	"replace --cascade":                       "`vedette delete --cascade`, then `vedette create`",
	"replace --grace-period":                  "`vedette delete --grace-period`, then `vedette create`",
	"replace --wait":                          "`--force` always waits",
	"rollout status --revision":               "always the newest revision",
	"scale --resource-version":                "`--current-replicas` is the only precondition",
	"scale --timeout":                         "`vedette rollout status --timeout` waits",
	"api-resources --cached":                  "always on: the server caches what clusters serve",
	"--as":                                    "`--user` names a user of Spinnaker, whom the server checks; the agent's credentials are those of the account",
	"--as-group":                              "the groups are those that Fiat has for the user",
	"--as-uid":                                "see `--as`",
	"--as-user-extra":                         "see `--as`",
	"--cache-dir":                             "the command keeps no cache",
	"--certificate-authority":                 "`--cacert`, for the certificate of the Vedette server",
	"--client-certificate":                    "`--cert`",
	"--client-key":                            "`--key`",
	"--cluster":                               "`--account`",
	"--context":                               "a context names a Vedette server, see `vedette config`",
	"--disable-compression":                   "large answers are always compressed",
	"--insecure-skip-tls-verify":              "is about the certificate of the Vedette server",
	"--kubeconfig":                            "agents have the kubeconfigs; `VEDETTE_CONFIG` names the file of Vedette's contexts",
	"--kuberc":                                "use aliases of your shell",
	"--log-flush-frequency":                   "the command writes no log",
	"--match-server-version":                  "old and new versions work together; `vedette version` shows both",
	"--namespace":                             "not of all commands, but of each one that has namespaces",
	"--password":                              "`https://USER:PASSWORD@HOST` as the address of the server, for a proxy in front of it",
	"--profile":                               "commands write no profiles; servers and agents serve pprof",
	"--profile-output":                        "see `--profile`",
	"--request-timeout":                       "`--timeout` of the commands that wait",
	"--server":                                "the address of the Vedette server",
	"--tls-server-name":                       "use an address with a host name that is in the server's certificate",
	"--token":                                 "`--token-file`, which is read for each request",
	"--user":                                  "a user of Spinnaker, not one of a kubeconfig",
	"--username":                              "`https://USER:PASSWORD@HOST` as the address of the server, for a proxy in front of it",
	"--v":                                     "the command writes no log: see those of the server and the agent",
	"--vmodule":                               "see `--v`",
	"--warnings-as-errors":                    "the outcomes of `POST /vedette/v1/operations` have `warnings`",
}
