package manifest

import "strings"

// nativeGroups are the API groups that Clouddriver counts as Kubernetes' own. The list is of
// Kubernetes 1.12, and names of kinds depend on it, so groups that came later must not be added:
// "Lease.coordination.k8s.io" is the name that pipelines have.
var nativeGroups = map[string]bool{
	"": true, "core": true, "apps": true, "autoscaling": true, "batch": true, "extensions": true, "policy": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true, "authentication.k8s.io": true,
	"authorization.k8s.io": true, "certificates.k8s.io": true, "networking.k8s.io": true, "rbac.authorization.k8s.io": true,
	"scheduling.k8s.io": true, "settings.k8s.io": true, "storage.k8s.io": true,
}

// isNativeGroup reports whether Clouddriver drops an API group from the names of kinds.
func isNativeGroup(group string) bool { return nativeGroups[strings.ToLower(group)] }
