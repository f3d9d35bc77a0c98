package vedette

// Projection tells an agent what to lift out of every object of a kind, so that the
// server can filter and list without opening bodies. The server sends its lifts
// at registration; a newer server may ask an older agent for other fields.
type Projection struct {
	Kind   Kind // the zero Kind means every kind that has no lift of its own
	Fields []ProjectionField
}

// ProjectionField is one member of an object's summary.
type ProjectionField struct {
	Name string // the member's name in the summary, short
	// Path leads from the object's root to the value: member names joined by
	// dots; "*" stands for every element of an array (the values are gathered
	// into an array, null where an element lacks the rest of the path) and a
	// last "#" for the number of elements or members. A dot inside of a member
	// name is written "\.". What is not there is left out.
	Path string
}

// HeaderAnnotations are the prefixes of the annotations that travel in the
// header: those by which Spinnaker groups, versions and routes, and the
// Deployment controller's revision.
var HeaderAnnotations = []string{
	"artifact.spinnaker.io/", "caching.spinnaker.io/", "deployment.kubernetes.io/revision",
	"moniker.spinnaker.io/", "strategy.spinnaker.io/", "traffic.spinnaker.io/",
}
