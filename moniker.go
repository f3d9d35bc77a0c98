package vedette

import (
	"strconv"
	"strings"
)

// Moniker is the name under which Spinnaker groups an object.
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

// MonikerOf derives an object's moniker as Clouddriver's kubernetesAnnotations strategy
// does: each part comes from its annotation. An object that Spinnaker did not deploy
// has no annotations. For such an object, the application, the cluster and the sequence
// are derived from the name by Frigga's rules; stack and detail are not. So the cluster
// of a Deployment "web" is "deployment web" if Spinnaker deployed it, and "web"
// otherwise.
//
// A ReplicaSet has the annotations of its Deployment because the controller copies
// them. Its sequence is the revision from the controller, unless a deployment set a
// sequence.
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

// parseFrigga parses app-stack-detail-v003. The cluster is everything but the sequence.
// Names of Kubernetes' own objects ("system:node") belong to the application "system".
func parseFrigga(name string) Moniker {
	cluster, sequence := cutSequence(name)
	app, _, _ := strings.Cut(cluster, "-")
	if strings.HasPrefix(name, "system:") {
		app = "system"
	}
	return Moniker{App: app, Cluster: cluster, Sequence: sequence}
}

// cutSequence removes a trailing "-v003" from a name. Frigga requires at least three
// digits.
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
