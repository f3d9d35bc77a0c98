package attributes

// words are texts that many objects have, so that they take one byte each. Stored bytes refer to
// them by index: words may only be added at the end, and no more than 64 of them.
var words = []string{
	"", "v1", "apps/v1", "batch/v1", "networking.k8s.io/v1", "apps", "batch",
	"ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob",
	"deployment ", "replicaSet ", "statefulSet ", "daemonSet ", "job ", "cronJob ", "service ", "ingress ",
	"Running", "Pending", "Succeeded", "Failed", "Unknown",
	"app", "name", "component", "tier", "version", "release", "pod-template-hash", "controller-revision-hash",
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/component",
	"app.kubernetes.io/part-of", "app.kubernetes.io/managed-by", "helm.sh/chart", "k8s-app", "Helm", "spinnaker",
	"job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid",
	"apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name", "istio-proxy", "main", "rbac.authorization.k8s.io/v1",
	"apiextensions.k8s.io/v1", "discovery.k8s.io/v1", "policy/v1", "autoscaling/v2", "networkPolicy ",
}

var wordIndex = indexWords()

func indexWords() map[string]uint64 {
	index := make(map[string]uint64, len(words))
	for i, w := range words {
		index[w] = uint64(i)
	}
	return index
}
