package operate

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
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
func (r *run) version(ctx context.Context, a vedette.VersionArgs) result {
	m, err := manifest.Parse(a.Manifest)
	if err != nil {
		return errorResult(err)
	}
	v, err := r.computeVersion(ctx, m, a.Namespace)
	if err = r.maskManifestValues(m, err); err != nil {
		return errorResult(err)
	}
	return jsonResult(v)
}

func (r *run) computeVersion(ctx context.Context, m manifest.Manifest, namespace string) (vedette.Version, error) {
	if m.Name == "" {
		return vedette.Version{}, vedette.Errorf(vedette.Invalid, "the manifest of kind %s has no metadata.name: what gets its name from the cluster has no versions", m.Kind)
	}
	p, err := r.resolveManifest(ctx, &m, namespace)
	if err != nil {
		return vedette.Version{}, err
	}
	s := series{p.Kind, p.namespace, m.Name}
	candidates, err := r.listCandidates(ctx, p, s)
	if err != nil {
		return vedette.Version{}, err
	}
	defer wipeCandidates(candidates)
	return r.chooseVersion(ctx, p, s, m, candidates)
}

// chooseVersion finds the version of a manifest among what was made before. Where two
// were made from it, which takes a race of two deployments, it is the newer one.
func (r *run) chooseVersion(ctx context.Context, p resourcePath, s series, m manifest.Manifest, candidates []candidate) (vedette.Version, error) {
	if len(candidates) == 0 {
		return vedette.Version{}, nil
	}
	v := vedette.Version{Latest: candidates[len(candidates)-1].name}
	for _, x := range candidates {
		v.Number = max(v.Number, x.number+1)
	}
	c := comparison{run: r, path: p, manifest: m, digests: map[string][]byte{}}
	for i := len(candidates) - 1; i >= 0; i-- {
		x := candidates[i]
		if x.number < 0 || x.deleting { // it can't be reused
			continue
		}
		same, err := c.matches(ctx, x)
		if err != nil {
			return v, err
		}
		if same {
			v.Number, v.Exists = x.number, true
			r.operator.salts.put(s, x.digest)
			return v, nil
		}
	}
	r.operator.salts.put(s, newestDigest(candidates))
	return v, nil
}

// newestDigest is the content annotation of the newest object that has one.
func newestDigest(candidates []candidate) (newest sensitiveBytes) {
	for _, x := range candidates {
		if len(x.digest) > 0 {
			newest = x.digest
		}
	}
	return newest
}

// series are the versions of one thing.
type series struct {
	kind      vedette.Kind
	namespace string
	name      string // without a version
}

// seriesOf is the series that an object belongs to by its manifest.
func seriesOf(p resourcePath, m manifest.Manifest) series {
	return series{p.Kind, p.namespace, firstNonEmpty(m.Annotation(artifactName), m.Name)}
}

// includes reports whether an object of the series' kind and namespace belongs to
// it. Others made it that have the same name without the annotations.
func (s series) includes(annotation func(string) string) bool {
	kind := s.kind.String()
	if vedette.IsNativeGroup(s.kind.Group) {
		kind = s.kind.Name
	}
	return strings.EqualFold(annotation(artifactType), "kubernetes/"+kind) && annotation(artifactName) == s.name && annotation(artifactLocation) == s.namespace
}

var versionPattern = regexp.MustCompile(`^v([0-9]+)$`)

// versionNumber reads the version of an object, by its annotation or else by what its
// name has after that of the series; -1 where neither tells one.
func (s series) versionNumber(name, annotation string) int {
	suffix, _ := strings.CutPrefix(name, s.name+"-")
	for _, text := range []string{annotation, suffix} {
		if found := versionPattern.FindStringSubmatch(text); found != nil {
			if n, err := strconv.ParseUint(found[1], 10, 31); err == nil {
				return int(n)
			}
		}
	}
	return -1
}
