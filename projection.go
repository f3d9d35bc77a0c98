package vedette

// Projection lists the fields that an agent extracts from every object of a kind, so
// that the server can filter and list without parsing bodies. The server sends its
// projections when an agent connects; a newer server may send an older agent other
// fields.
type Projection struct {
	Kind   Kind // the zero Kind means every kind without a projection of its own
	Fields []ProjectionField
}

// ProjectionField is one member of an object's summary.
type ProjectionField struct {
	Name string // the member's name in the summary, short
	// Path leads from the object's root to the value: member names joined by dots. "*"
	// means every element of an array; the values become an array, with null for an
	// element without the rest of the path. A final "#" means the number of elements or
	// members. A dot within a member name is written "\.". A missing value is left out.
	Path string
}

// HeaderAnnotations are the prefixes of the annotations that an object's header
// includes: those by which Spinnaker groups, versions and routes, and the Deployment
// controller's revision.
var HeaderAnnotations = []string{
	"artifact.spinnaker.io/", "caching.spinnaker.io/", "deployment.kubernetes.io/revision",
	"moniker.spinnaker.io/", "strategy.spinnaker.io/", "traffic.spinnaker.io/",
}
