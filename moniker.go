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
// strategy does: each part from its annotation, and where that is missing from
// the Frigga parse of the name; a ReplicaSet's sequence from the revision that
// the Deployment controller wrote.
func MonikerOf(key Key, annotations map[string]string) Moniker {
	m := parseFrigga(key.Name)
	m.App = firstOf(annotations[monikerPrefix+"application"], m.App)
	m.Cluster = firstOf(annotations[monikerPrefix+"cluster"], m.Cluster)
	m.Stack = firstOf(annotations[monikerPrefix+"stack"], m.Stack)
	m.Detail = firstOf(annotations[monikerPrefix+"detail"], m.Detail)
	if n, err := strconv.Atoi(annotations[monikerPrefix+"sequence"]); err == nil {
		m.Sequence = &n
	}
	if n, err := strconv.Atoi(annotations[revisionAnnotation]); err == nil && key.Kind.Name == "ReplicaSet" {
		m.Sequence = &n
	}
	return m
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// parseFrigga splits app-stack-detail-v003. Names of Kubernetes' own objects
// ("system:node") have no stack and belong to the application "system".
func parseFrigga(name string) Moniker {
	if strings.HasPrefix(name, "system:") {
		return Moniker{App: "system", Cluster: name}
	}
	cluster, sequence := cutSequence(name)
	parts := strings.SplitN(cluster, "-", 3)
	m := Moniker{App: parts[0], Cluster: cluster, Sequence: sequence}
	if len(parts) > 1 {
		m.Stack = parts[1]
	}
	if len(parts) > 2 {
		m.Detail = parts[2]
	}
	return m
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
