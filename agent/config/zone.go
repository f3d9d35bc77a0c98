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

// Pod is the pod in which the agent runs.
type Pod struct{ Namespace, Name string }

// Zone returns the zone of an agent whose pod a workload controls: the name of the workload and
// the namespace, joined by an underscore as in the predecessor.
func (p Pod) Zone(workload string) string { return workload + "_" + p.Namespace }

// setZone sets the default of zoneId, by the name of the pod. The owners of the pod say more, but
// only the API server knows them (see ZoneFromPod).
func (c *Config) setZone(env func(string) (string, bool), namespaceFile string) {
	if c.ZoneID != "" || env == nil {
		return
	}
	pod, _ := env("HOSTNAME")
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil || pod == "" || len(strings.TrimSpace(string(namespace))) == 0 {
		return
	}
	c.pod = Pod{Namespace: strings.TrimSpace(string(namespace)), Name: pod}
	if name := deploymentPodName.FindStringSubmatch(pod); name != nil {
		c.ZoneID = c.pod.Zone(name[1])
	}
}

// ZoneFromPod returns the pod whose owners give the default of zoneId. It returns false if zoneId
// is configured, or if the agent does not run in a pod.
func (c *Config) ZoneFromPod() (Pod, bool) { return c.pod, c.pod != Pod{} }
