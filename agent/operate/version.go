package operate

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// The annotations by which Spinnaker knows the versions of one thing.
const (
	artifactType     = "artifact.spinnaker.io/type"
	artifactName     = "artifact.spinnaker.io/name"
	artifactLocation = "artifact.spinnaker.io/location"
	artifactVersion  = "artifact.spinnaker.io/version"
)

// version tells which version a manifest becomes, by the rules of Clouddriver:
// that of an object that was made from the same manifest, or else the one after
// the highest that there is.
func (o *Operator) version(ctx context.Context, a vedette.VersionArgs) result {
	m, err := parseManifest(a.Manifest)
	if err != nil {
		return failed(err)
	}
	v, err := o.versionOf(ctx, m, a.Namespace)
	if err = veil(ctx, m, err); err != nil {
		return failed(err)
	}
	return telling(v)
}

func (o *Operator) versionOf(ctx context.Context, m manifest, namespace string) (vedette.Version, error) {
	if m.name == "" {
		return vedette.Version{}, vedette.Errorf(vedette.Invalid, "the manifest of kind %s has no metadata.name: what gets its name from the cluster has no versions", m.kind)
	}
	p, err := o.locate(ctx, &m, namespace)
	if err != nil {
		return vedette.Version{}, err
	}
	s := series{p.Kind, p.namespace, m.name}
	made, err := o.madeIn(ctx, p, s)
	if err != nil {
		return vedette.Version{}, err
	}
	defer wipe(made)
	return o.decide(ctx, p, s, m, made)
}

// decide finds the version of a manifest among what was made before. Where two
// were made from it, which takes a race of two deployments, it is the newer one.
func (o *Operator) decide(ctx context.Context, p place, s series, m manifest, made []instance) (vedette.Version, error) {
	if len(made) == 0 {
		return vedette.Version{}, nil
	}
	v := vedette.Version{Latest: made[len(made)-1].name}
	for _, x := range made {
		v.Number = max(v.Number, x.number+1)
	}
	c := comparison{operator: o, place: p, manifest: m, digests: map[string][]byte{}}
	for i := len(made) - 1; i >= 0; i-- {
		x := made[i]
		if x.number < 0 || x.doomed { // it can't be reused
			continue
		}
		same, err := c.madeFrom(ctx, x)
		if err != nil {
			return v, err
		}
		if same {
			v.Number, v.Exists = x.number, true
			o.salts.keep(s, x.content)
			return v, nil
		}
	}
	o.salts.keep(s, newestContent(made))
	return v, nil
}

// newestContent is the content annotation of the newest object that has one.
func newestContent(made []instance) (content hidden) {
	for _, x := range made {
		if len(x.content) > 0 {
			content = x.content
		}
	}
	return content
}

// series are the versions of one thing.
type series struct {
	kind      vedette.Kind
	namespace string
	name      string // without a version
}

// seriesOf is the series that an object belongs to by its manifest.
func seriesOf(p place, m manifest) series {
	return series{p.Kind, p.namespace, firstOf(m.annotation(artifactName), m.name)}
}

// holds reports whether an object of the series' kind and namespace belongs to
// it. Others made it that have the same name without the annotations.
func (s series) holds(annotation func(string) string) bool {
	kind := s.kind.String()
	if vedette.IsNativeGroup(s.kind.Group) {
		kind = s.kind.Name
	}
	return strings.EqualFold(annotation(artifactType), "kubernetes/"+kind) && annotation(artifactName) == s.name && annotation(artifactLocation) == s.namespace
}

var versionText = regexp.MustCompile(`^v([0-9]+)$`)

// number reads the version of an object, by its annotation or else by what its
// name has after that of the series; -1 where neither tells one.
func (s series) number(name, annotation string) int {
	suffix, _ := strings.CutPrefix(name, s.name+"-")
	for _, text := range []string{annotation, suffix} {
		if found := versionText.FindStringSubmatch(text); found != nil {
			if n, err := strconv.ParseUint(found[1], 10, 31); err == nil {
				return int(n)
			}
		}
	}
	return -1
}
