package vedette

// Moniker is the name under which Spinnaker groups an object. Texts that are not known are
// empty.
type Moniker struct {
	App      string
	Cluster  string
	Stack    string
	Detail   string
	Sequence *int
	// Blank are the texts that are known to be empty. Clouddriver shows these, and leaves out those
	// that are not known.
	Blank MonikerParts
}

// MonikerParts is a set of texts of a moniker.
type MonikerParts uint8

// The texts of a moniker.
const (
	AppPart MonikerParts = 1 << iota
	ClusterPart
	StackPart
	DetailPart
)

// Text returns one text of a moniker, and whether it is known.
func (m *Moniker) Text(part MonikerParts) (text string, known bool) {
	switch part {
	case AppPart:
		text = m.App
	case ClusterPart:
		text = m.Cluster
	case StackPart:
		text = m.Stack
	case DetailPart:
		text = m.Detail
	}
	return text, text != "" || m.Blank&part != 0
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
// otherwise. An annotation takes precedence even if it is empty or invalid: an empty one is
// the empty text, and what an invalid one is for is not known.
//
// A ReplicaSet has the annotations of its Deployment because the controller copies
// them. Its sequence is the revision from the controller, unless a deployment set a
// sequence.
func MonikerOf(key Key, annotations map[string]string) Moniker {
	m := parseFrigga(key.Name)
	m.readText(annotations, "application", AppPart, &m.App)
	m.readText(annotations, "cluster", ClusterPart, &m.Cluster)
	m.readText(annotations, "stack", StackPart, &m.Stack)
	m.readText(annotations, "detail", DetailPart, &m.Detail)
	if value, ok := annotations[revisionAnnotation]; ok && key.Kind.Name == "ReplicaSet" {
		m.Sequence = parseNumberAnnotation(value)
	}
	if value, ok := annotations[monikerPrefix+"sequence"]; ok {
		m.Sequence = parseNumberAnnotation(value)
	}
	return m
}

// readText sets a text from its annotation, if there is one. A text that cannot be read is not known, and an empty one is.
func (m *Moniker) readText(annotations map[string]string, name string, part MonikerParts, text *string) {
	value, exists := annotations[monikerPrefix+name]
	if !exists {
		return
	}
	var ok bool
	*text, ok = parseTextAnnotation(value)
	if ok && *text == "" {
		m.Blank |= part
	}
}
