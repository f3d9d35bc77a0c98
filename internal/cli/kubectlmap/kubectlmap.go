// Package kubectlmap says for each command of kubectl what vedette has instead. The commands that vedette lacks answer
// with it, and the documentation is generated from it.
package kubectlmap

// Status says whether vedette has a command of kubectl.
type Status string

// The values of Status.
const (
	Same      Status = "same"      // the same words and flags, over several accounts
	Different Status = "different" // there, with differences; see Command.Instead
	Absent    Status = "absent"    // not there; see Command.Instead
)

// Command is one command of kubectl.
type Command struct {
	// Path is the command without "kubectl": "rollout status".
	Path   string
	Status Status
	// Instead says what is different, or what to use instead. It is empty for Same, and otherwise a phrase
	// that begins in lower case and may contain commands in backquotes.
	Instead string
}

// Commands returns all commands of kubectl, in the order of their names. Commands whose parent is absent are not listed,
// because the parent answers for them.
func Commands() []Command { return commands }

// kubectlItself is what there is instead of commands that reach one Pod or the API server itself.
const kubectlItself = "use kubectl with the cluster's own kubeconfig: vedette does not open connections into clusters"

var commands = []Command{
	{"alpha", Absent, "use kubectl: these commands are experimental"},
	{"annotate", Different, "no `--dry-run=client`: use `--dry-run=server`"},
	{"api-resources", Different, "shows which accounts serve a kind"},
	{"api-versions", Absent, "use `vedette api-resources`, which shows the group and version of each kind"},
	{"apply", Different, "ConfigMaps and Secrets are applied server-side; `--prune` also finds what was applied server-side"},
	{"apply edit-last-applied", Absent, "change the file and use `vedette apply -f FILE`"},
	{"apply set-last-applied", Absent, "use `vedette apply -f FILE`, which writes the annotation with the manifest"},
	{"apply view-last-applied", Absent, "use `vedette get KIND NAME -o yaml`, which shows the annotation `kubectl.kubernetes.io/last-applied-configuration`"},
	{"attach", Absent, kubectlItself},
	{"auth", Different, "has only `can-i`"},
	{"auth can-i", Different, "shows in a column each what the cluster allows the credentials of the agent, and what the server allows you"},
	{"auth reconcile", Absent, "use `vedette apply -f FILE`, which makes the rules those of the manifest"},
	{"auth whoami", Absent, "use `vedette auth can-i --list` for what the credentials of an agent may do"},
	{"autoscale", Absent, "write a HorizontalPodAutoscaler with `kubectl autoscale … --dry-run=client -o yaml`, and use `vedette create -f -`"},
	{"certificate", Absent, "use kubectl with the cluster's own kubeconfig: agents do not approve certificates"},
	{"cluster-info", Absent, "use `vedette accounts`, which shows the address and version of each cluster"},
	{"completion", Different, "also completes accounts, and the kinds that agents report"},
	{"config", Different, "a context names a Vedette server, not a cluster: `--account` selects clusters. It has `set-context`, `use-context`, `get-contexts`, `current-context` and `delete-context`"},
	{"cordon", Absent, "use `vedette patch node NAME -p '{\"spec\":{\"unschedulable\":true}}'`"},
	{"cp", Absent, kubectlItself},
	{"create", Different, "takes files only, by `-f`: write other objects with `kubectl create … --dry-run=client -o yaml`, and use `vedette create -f -`"},
	{"debug", Absent, kubectlItself},
	{"delete", Different, "`--all` in several accounts needs `--yes`"},
	{"describe", Different, "reads through the agents, so the data of Secrets is not shown; Pods and Deployments are shown as by kubectl, other kinds with all of their fields"},
	{"diff", Different, "shows a difference that several accounts have once, and of Secrets only which keys differ; `--all-accounts-against` compares clusters with each other"},
	{"drain", Absent, "use `vedette patch node NAME -p '{\"spec\":{\"unschedulable\":true}}'`, and delete its pods with `vedette delete pods -A --field-selector spec.nodeName=NAME`, which ignores PodDisruptionBudgets; `kubectl drain` respects them"},
	{"edit", Absent, "use `vedette get KIND NAME -n NAMESPACE -o yaml > FILE`, edit the file, and use `vedette replace -f FILE`"},
	{"events", Different, "shows the Events of several accounts in the order of time; needs `-n`, `-A` or `--account`; `--watch` reads every two seconds"},
	{"exec", Absent, kubectlItself},
	{"explain", Absent, "use kubectl: the documentation of a kind is the same in all clusters of its version"},
	{"expose", Absent, "write a Service with `kubectl expose … --dry-run=client -o yaml`, and use `vedette create -f -`"},
	{"get", Different, "shows all namespaces unless `-n` is given, and reads what agents report"},
	{"kuberc", Absent, "vedette does not read kubectl's preferences: use aliases of your shell"},
	{"kustomize", Absent, "use `kustomize build DIRECTORY | vedette apply -f -`"},
	{"label", Different, "no `--dry-run=client`: use `--dry-run=server`"},
	{"logs", Same, ""},
	{"options", Absent, "use `vedette --help`"},
	{"patch", Different, "`-l`, `--field-selector` and `--all` select objects, too; no `--dry-run=client`: use `--dry-run=server`"},
	{"plugin", Absent, "write a script that uses `vedette` with `-o json` or `-o name`"},
	{"port-forward", Absent, kubectlItself},
	{"proxy", Absent, "use the REST API of the server, `/vedette/v1`, which answers for all clusters"},
	{"replace", Different, "`--force` first checks that the API server accepts the manifest, then deletes the object and applies the manifest; it also creates what does not exist"},
	{"rollout", Same, ""},
	{"rollout history", Different, "also shows the name of each revision, and which one is current"},
	{"rollout pause", Same, ""},
	{"rollout restart", Same, ""},
	{"rollout resume", Same, ""},
	{"rollout status", Different, "waits in all accounts at once"},
	{"rollout undo", Same, ""},
	{"run", Absent, "write a Pod with `kubectl run … --dry-run=client -o yaml`, and use `vedette create -f -`"},
	{"scale", Different, "`--all` in several accounts needs `--yes`"},
	{"set", Different, "has only `set image`"},
	{"set env", Absent, "use `vedette patch deployment NAME -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"NAME\",\"env\":[{\"name\":\"KEY\",\"value\":\"VALUE\"}]}]}}}}'`"},
	{"set image", Different, "no `--dry-run=client`: use `--dry-run=server`"},
	{"set resources", Absent, "use `vedette patch deployment NAME -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"NAME\",\"resources\":{}}]}}}}'`"},
	{"set selector", Absent, "use `vedette patch service NAME --type merge -p '{\"spec\":{\"selector\":{\"KEY\":\"VALUE\"}}}'`"},
	{"set serviceaccount", Absent, "use `vedette patch deployment NAME -p '{\"spec\":{\"template\":{\"spec\":{\"serviceAccountName\":\"NAME\"}}}}'`"},
	{"set subject", Absent, "change the binding's file and use `vedette apply -f FILE`"},
	{"taint", Absent, "use `vedette patch node NAME -p '{\"spec\":{\"taints\":[{\"key\":\"KEY\",\"value\":\"VALUE\",\"effect\":\"NoSchedule\"}]}}'`, which replaces all taints of the node"},
	{"top", Absent, "use `kubectl top`, or `POST /vedette/v1/operations` with the verb `metrics`"},
	{"uncordon", Absent, "use `vedette patch node NAME -p '{\"spec\":{\"unschedulable\":null}}'`"},
	{"version", Different, "shows the versions of the client and of the Vedette server; `vedette accounts` shows those of the clusters"},
	{"wait", Different, "follows what agents report, if they report the kind; otherwise it reads from the cluster"},
}
