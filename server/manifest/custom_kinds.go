package manifest

import (
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// namedPriorities are Clouddriver's names of priorities.
var namedPriorities = map[string]int{
	"LOWEST": unregisteredPriority, "WORKLOAD_ATTACHMENT": 110, "WORKLOAD_CONTROLLER": 100, "WORKLOAD": 100, "WORKLOAD_MODIFIER": 90,
	"PDB":         90,
	"API_SERVICE": 80, "NETWORK_RESOURCE": 70, "MOUNTABLE_DATA": 50, "MOUNTABLE_DATA_BACKING_RESOURCE": 40, "SERVICE_ACCOUNT": 40,
	"STORAGE_CLASS": 40, "ADMISSION": 40, "RESOURCE_DEFINITION": 30, "ROLE_BINDING": 30, "ROLE": 20, "NAMESPACE": 0,
}

// WithCustomKinds adds the rules in an account's customResources. A priority that is neither a
// number nor one of Clouddriver's names (ROLE_PRIORITY) counts as the default, 100.
func (r Rules) WithCustomKinds(all []vedette.CustomResource) Rules {
	declared := map[string]vedette.CustomResource{}
	for _, c := range all {
		declared[customKey(vedette.ParseKind(c.KubernetesKind))] = c
	}
	r.Versioned = func(kind vedette.Kind) (bool, bool) {
		c, known := declared[customKey(kind)]
		return c.Versioned, known
	}
	r.Priority = func(kind vedette.Kind) (int, bool) {
		c, known := declared[customKey(kind)]
		return parsePriority(c.DeployPriority), known
	}
	return r
}

func customKey(kind vedette.Kind) string { return strings.ToLower(KindName(kind)) }

func parsePriority(value string) int {
	if n, err := strconv.Atoi(value); err == nil {
		return n
	}
	if n, known := namedPriorities[strings.TrimSuffix(strings.ToUpper(value), "_PRIORITY")]; known {
		return n
	}
	return namedPriorities["WORKLOAD_CONTROLLER"]
}
