package operate

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/operate/versioning"
)

// version returns which version of its artifact a manifest becomes.
func (r *run) version(ctx context.Context, a vedette.VersionArgs) result {
	m, err := manifest.Parse(a.Manifest)
	if err != nil {
		return errorResult(err)
	}
	v, err := r.chooseVersion(ctx, m, a.Namespace)
	err = r.MaskManifestValues(m, err)
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
	series := versioning.Series{Kind: p.Kind, Namespace: p.Namespace, Name: m.Name}
	candidates, err := r.listCandidates(ctx, p, series)
	if err != nil {
		return vedette.Version{}, err
	}
	defer versioning.Wipe(candidates)
	chooser := versioning.Chooser{Series: series, Manifest: m, Salts: &r.operator.salts, ReadConfigMap: r.configMapReader(p)}
	return chooser.Choose(ctx, candidates)
}

// listCandidates returns the objects of a series in the order of versioning.Sort. It reads metadata
// only, because most objects need nothing else, and a list of ConfigMaps may be large.
func (r *run) listCandidates(ctx context.Context, p request.Path, s versioning.Series) ([]versioning.Candidate, error) {
	candidates := request.Pages[versioning.Candidate]{Drop: versioning.Wipe}
	p = p.Collection()
	err := r.ForEachItem(ctx, p, p.ListMetaRequest("", ""), candidates.Begin, func(_ int, raw []byte) error {
		size := len(raw)
		x, ok, err := s.ParseCandidate(raw)
		if err != nil {
			return request.Final(err)
		}
		if !ok {
			return nil
		}
		candidates.Items = append(candidates.Items, x)
		return r.UseMemory(ctx, int64(2*size))
	})
	if err != nil {
		versioning.Wipe(candidates.Items)
		return nil, err
	}
	versioning.Sort(candidates.Items)
	return candidates.Items, nil
}

// configMapReader returns a function that reads ConfigMaps beside p.
func (r *run) configMapReader(p request.Path) func(context.Context, string) ([]byte, bool, error) {
	return func(ctx context.Context, name string) ([]byte, bool, error) {
		p.Name = name
		raw, _, err := r.Do(ctx, p, request.Request{})
		if request.IsNotFound(err) {
			return nil, false, nil
		}
		return raw, true, err
	}
}

// setDigest writes the digest of a manifest into it if its object needs one. The salt is that of
// the live object, so that applying the same manifest again changes nothing, or else that of the
// series, or else a new one.
func (r *run) setDigest(ctx context.Context, p request.Path, m manifest.Manifest) {
	if !versioning.NeedsDigest(p.Kind, m) {
		return
	}
	salt := r.liveSalt(ctx, p)
	if salt == nil {
		salt = r.operator.salts.SaltFor(versioning.SeriesOf(p.Key(), m))
	}
	versioning.SetDigest(p.Kind, m, salt)
}

// liveSalt returns the salt of the live object's digest, nil if it has none or can't be read:
// a new salt does no harm.
func (r *run) liveSalt(ctx context.Context, p request.Path) []byte {
	raw, _, err := r.Do(ctx, p, request.Request{Accept: p.MetadataAcceptHeader(), Sensitive: p.IsSecret()})
	if err != nil {
		return nil
	}
	return versioning.SaltOf(raw)
}
