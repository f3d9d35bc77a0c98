package operate

import (
	"context"
	"net/url"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/artifact"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// version returns which version of its artifact a manifest becomes.
func (r *run) version(ctx context.Context, a vedette.VersionArgs) result {
	m, err := manifest.Parse(a.Manifest)
	if err != nil {
		return errorResult(err)
	}
	v, err := r.chooseVersion(ctx, m, a.Namespace)
	err = r.maskManifestValues(m, err)
	if err != nil {
		return errorResult(err)
	}
	return jsonResult(v)
}

func (r *run) chooseVersion(ctx context.Context, m manifest.Manifest, namespace string) (vedette.Version, error) {
	if m.Name == "" {
		return vedette.Version{}, vedette.Errorf(vedette.Invalid,
			"the manifest of kind %s has no metadata.name: objects whose names the cluster generates have no versions", m.Kind)
	}
	p, err := r.resolveManifest(ctx, &m, namespace)
	if err != nil {
		return vedette.Version{}, err
	}
	series := artifact.Series{Kind: p.Kind, Namespace: p.namespace, Name: m.Name}
	candidates, err := r.listCandidates(ctx, p, series)
	if err != nil {
		return vedette.Version{}, err
	}
	defer artifact.Wipe(candidates)
	return artifact.Chooser{Series: series, Manifest: m, Salts: &r.operator.salts, ReadConfigMap: r.configMapReader(p)}.Choose(ctx, candidates)
}

// listCandidates returns the objects of a series in the order of artifact.Sort. It reads metadata
// only, because most objects need nothing else, and a list of ConfigMaps may be large.
func (r *run) listCandidates(ctx context.Context, p resourcePath, s artifact.Series) ([]artifact.Candidate, error) {
	var candidates candidatePages
	req := request{query: url.Values{"limit": {strconv.Itoa(pageLimit)}}, accept: withFullObjectFallback(p, acceptMetadataList),
		sensitive: p.isSecret()}
	err := r.forEachItem(ctx, p.collection(), req, candidates.begin, func(_ int, raw []byte) error {
		size := len(raw)
		x, ok, err := s.ParseCandidate(raw)
		if err != nil {
			return finalError{err}
		}
		if !ok {
			return nil
		}
		candidates.items = append(candidates.items, x)
		return r.useMemory(ctx, int64(2*size))
	})
	if err != nil {
		artifact.Wipe(candidates.items)
		return nil, err
	}
	artifact.Sort(candidates.items)
	return candidates.items, nil
}

// candidatePages collects candidates, and wipes those that it drops.
type candidatePages struct{ pagesOf[artifact.Candidate] }

func (c *candidatePages) begin(page int) error {
	switch {
	case page == 0:
		artifact.Wipe(c.items)
	case page == c.page:
		artifact.Wipe(c.items[c.from:])
	}
	return c.pagesOf.begin(page)
}

// configMapReader returns a function that reads ConfigMaps beside p.
func (r *run) configMapReader(p resourcePath) func(context.Context, string) ([]byte, bool, error) {
	return func(ctx context.Context, name string) ([]byte, bool, error) {
		p.name = name
		raw, _, err := r.do(ctx, p, request{})
		if isNotFound(err) {
			return nil, false, nil
		}
		return raw, true, err
	}
}

// setDigest writes the digest of a manifest into it if its object needs one. The salt is that of
// the live object, so that applying the same manifest again changes nothing, or else that of the
// series, or else a new one.
func (r *run) setDigest(ctx context.Context, p resourcePath, m manifest.Manifest) {
	if !artifact.NeedsDigest(p.Kind, m) {
		return
	}
	salt := r.liveSalt(ctx, p)
	if salt == nil {
		salt = r.operator.salts.SaltFor(artifact.SeriesOf(p.key(), m))
	}
	artifact.SetDigest(p.Kind, m, salt)
}

// liveSalt returns the salt of the live object's digest, nil if it has none or can't be read:
// a new salt does no harm.
func (r *run) liveSalt(ctx context.Context, p resourcePath) []byte {
	raw, _, err := r.do(ctx, p, request{accept: withFullObjectFallback(p, acceptMetadata), sensitive: p.isSecret()})
	if err != nil {
		return nil
	}
	return artifact.SaltOf(raw)
}
