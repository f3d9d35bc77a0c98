package versioning

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// Chooser chooses the version of a manifest.
type Chooser struct {
	Series   Series
	Manifest manifest.Manifest
	// Salts receives the salt of the series.
	Salts *SaltCache
	// ReadConfigMap returns the body of a ConfigMap of the series, and whether it exists. A
	// ConfigMap needs neither a digest nor an annotation, because it is its own manifest.
	ReadConfigMap func(ctx context.Context, name string) (body []byte, found bool, err error)
}

// Choose returns the version of the manifest. The candidates must be sorted. If two of them were
// made from the manifest, it is the newer one. A number whose name a foreign object has is skipped,
// because the version could not be created.
func (c Chooser) Choose(ctx context.Context, candidates []Candidate) (vedette.Version, error) {
	members, taken := splitForeign(candidates)
	v, err := c.chooseAmong(ctx, members)
	for !v.Exists && taken[c.Series.versionName(v.Number)] {
		v.Number++
	}
	return v, err
}

// splitForeign separates the objects of a series from the names that other objects have.
func splitForeign(candidates []Candidate) (members []Candidate, taken map[string]bool) {
	taken = map[string]bool{}
	for _, x := range candidates {
		if x.foreign {
			taken[x.name] = true
		} else {
			members = append(members, x)
		}
	}
	return members, taken
}

func (c Chooser) chooseAmong(ctx context.Context, candidates []Candidate) (vedette.Version, error) {
	if len(candidates) == 0 {
		return vedette.Version{}, nil
	}
	v := vedette.Version{Latest: candidates[len(candidates)-1].name}
	for _, x := range candidates {
		v.Number = max(v.Number, x.number+1)
	}
	comparison := comparison{Chooser: c, digests: map[string][]byte{}}
	for i := len(candidates) - 1; i >= 0; i-- {
		x := candidates[i]
		if x.number < 0 || x.deleting { // it can't be reused
			continue
		}
		same, err := comparison.matches(ctx, x)
		if err != nil {
			return v, err
		}
		if same {
			v.Number, v.Exists = x.number, true
			c.Salts.put(c.Series, x.digest)
			return v, nil
		}
	}
	c.Salts.put(c.Series, newestDigest(candidates))
	return v, nil
}

// newestDigest returns the digest of the newest candidate that has one.
func newestDigest(candidates []Candidate) (newest sensitiveBytes) {
	for _, x := range candidates {
		if len(x.digest) > 0 {
			newest = x.digest
		}
	}
	return newest
}
