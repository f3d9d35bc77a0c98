package vedette

import (
	"strconv"
	"strings"
)

// Moniker is the name that Spinnaker groups an object under.
type Moniker struct {
	App      string `json:"app"`
	Cluster  string `json:"cluster"`
	Stack    string `json:"stack,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Sequence *int   `json:"sequence,omitempty"`
}

const (
	monikerPrefix      = "moniker.spinnaker.io/"
	revisionAnnotation = "deployment.kubernetes.io/revision"
)

// MonikerOf derives an object's moniker as Clouddriver's kubernetesAnnotations
// strategy does, which reads what a deployment wrote: each part from its
// annotation. What nobody deployed by Spinnaker has no annotations, and then the
// name stands in, but for stack and detail: by Frigga's rules it tells the
// application, the cluster and the sequence. So the cluster of a Deployment "web"
// is "deployment web" where Spinnaker deployed it, and else "web".
//
// A ReplicaSet has the annotations of its Deployment, because its controller
// copies them, and of a revision that the controller wrote the sequence, unless a
// deployment gave it one.
func MonikerOf(key Key, annotations map[string]string) Moniker {
	m := parseFrigga(key.Name)
	m.App = firstNonEmpty(annotations[monikerPrefix+"application"], m.App)
	m.Cluster = firstNonEmpty(annotations[monikerPrefix+"cluster"], m.Cluster)
	m.Stack, m.Detail = annotations[monikerPrefix+"stack"], annotations[monikerPrefix+"detail"]
	if n, err := strconv.Atoi(annotations[revisionAnnotation]); err == nil && key.Kind.Name == "ReplicaSet" {
		m.Sequence = &n
	}
	if n, err := strconv.Atoi(annotations[monikerPrefix+"sequence"]); err == nil {
		m.Sequence = &n
	}
	return m
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// parseFrigga reads app-stack-detail-v003, of which all but the sequence is the
// cluster. Names of Kubernetes' own objects ("system:node") belong to the
// application "system".
func parseFrigga(name string) Moniker {
	cluster, sequence := cutSequence(name)
	app, _, _ := strings.Cut(cluster, "-")
	if strings.HasPrefix(name, "system:") {
		app = "system"
	}
	return Moniker{App: app, Cluster: cluster, Sequence: sequence}
}

// cutSequence takes a last "-v003" off a name. Frigga asks for three digits or
// more.
func cutSequence(name string) (string, *int) {
	i := strings.LastIndex(name, "-v")
	if i < 0 || len(name)-i < len("-v000") {
		return name, nil
	}
	n, err := strconv.ParseUint(name[i+2:], 10, 31)
	if err != nil {
		return name, nil
	}
	sequence := int(n)
	return name[:i], &sequence
}
