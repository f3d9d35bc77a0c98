package vedette

// Moniker is the name under which Spinnaker groups an object. Parts that are not known are
// empty.
type Moniker struct {
	App      string `json:"app,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
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
// otherwise. An annotation takes precedence even if it is empty or invalid.
//
// A ReplicaSet has the annotations of its Deployment because the controller copies
// them. Its sequence is the revision from the controller, unless a deployment set a
// sequence.
func MonikerOf(key Key, annotations map[string]string) Moniker {
	m := parseFrigga(key.Name)
	m.App = textAnnotation(annotations, "application", m.App)
	m.Cluster = textAnnotation(annotations, "cluster", m.Cluster)
	m.Stack, m.Detail = textAnnotation(annotations, "stack", ""), textAnnotation(annotations, "detail", "")
	if value, ok := annotations[revisionAnnotation]; ok && key.Kind.Name == "ReplicaSet" {
		m.Sequence = parseNumberAnnotation(value)
	}
	if value, ok := annotations[monikerPrefix+"sequence"]; ok {
		m.Sequence = parseNumberAnnotation(value)
	}
	return m
}

// textAnnotation returns a part of the moniker from its annotation, or the default if there
// is no annotation.
func textAnnotation(annotations map[string]string, part, defaultText string) string {
	if value, ok := annotations[monikerPrefix+part]; ok {
		return UnquoteAnnotation(value)
	}
	return defaultText
}
