package config

import (
	"os"
	"regexp"
	"strings"
)

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// deploymentPodName is a pod's name as Deployments give it: the Deployment's name, the
// hash of the ReplicaSet and a random end. Kubernetes uses no vowels in either, and
// no 0, 1 and 3.
var deploymentPodName = regexp.MustCompile(`^(.+)-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// defaultZone is the default zone of an agent: its Deployment's name and the namespace,
// joined by an underscore as the predecessor does. It is empty outside of a pod that
// a Deployment made.
func defaultZone(pod, namespaceFile string) string {
	name := deploymentPodName.FindStringSubmatch(pod)
	namespace, err := os.ReadFile(namespaceFile)
	if name == nil || err != nil || len(strings.TrimSpace(string(namespace))) == 0 {
		return ""
	}
	return name[1] + "_" + strings.TrimSpace(string(namespace))
}
