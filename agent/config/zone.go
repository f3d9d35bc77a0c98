package config

import (
	"os"
	"regexp"
	"strings"
)

// namespaceFile contains the name of a pod's namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// deploymentPodName matches the name of a Deployment's pod: the Deployment's name, the
// hash of the ReplicaSet and a random suffix. Neither hash nor suffix contains vowels,
// 0, 1 or 3, because Kubernetes encodes them without these characters.
var deploymentPodName = regexp.MustCompile(`^(.+)-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// defaultZone returns the default zone of an agent: its Deployment's name and the
// namespace, joined by an underscore as in the predecessor. It returns "" if the agent
// is not a Deployment's pod.
func defaultZone(pod, namespaceFile string) string {
	name := deploymentPodName.FindStringSubmatch(pod)
	namespace, err := os.ReadFile(namespaceFile)
	if name == nil || err != nil || len(strings.TrimSpace(string(namespace))) == 0 {
		return ""
	}
	return name[1] + "_" + strings.TrimSpace(string(namespace))
}
