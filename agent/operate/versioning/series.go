package versioning

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// The annotations with which Spinnaker marks the versions of an artifact.
const (
	typeAnnotation    = "artifact.spinnaker.io/type"
	nameAnnotation    = "artifact.spinnaker.io/name"
	versionAnnotation = "artifact.spinnaker.io/version"
)

// Series is all versions of one artifact.
type Series struct {
	Kind      vedette.Kind
	Namespace string
	Name      string // without a version
}

// SeriesOf returns the series of an object with a key and a manifest.
func SeriesOf(key vedette.Key, m manifest.Manifest) Series {
	name := vedette.UnquoteAnnotation(m.Annotation(nameAnnotation))
	if name == "" {
		name = m.Name
	}
	return Series{key.Kind, key.Namespace, name}
}

// includes reports whether an object of the series' kind and namespace belongs to the series. An
// object with its name but without the annotations does not: it was not made by Spinnaker. Like
// Clouddriver it compares neither the type nor the location, because the location is empty if the
// manifest had no namespace.
func (s Series) includes(annotation func(string) string) bool {
	return annotation(typeAnnotation) != "" && annotation(nameAnnotation) == s.Name
}

// versionName returns the name of the object of a version.
func (s Series) versionName(number int) string { return fmt.Sprintf("%s-v%03d", s.Name, number) }

// hasVersionName reports whether a name is that of a version, whatever the object is.
func (s Series) hasVersionName(name string) bool {
	n := s.versionNumber(name, "")
	return n >= 0 && name == s.versionName(n)
}

var versionPattern = regexp.MustCompile(`^v([0-9]+)$`)

// versionNumber returns the version of an object by its annotation, or else by the end of its
// name; -1 if neither has one.
func (s Series) versionNumber(name, annotation string) int {
	suffix, _ := strings.CutPrefix(name, s.Name+"-")
	for _, text := range []string{annotation, suffix} {
		if found := versionPattern.FindStringSubmatch(text); found != nil {
			if n, err := strconv.ParseUint(found[1], 10, 31); err == nil {
				return int(n)
			}
		}
	}
	return -1
}
