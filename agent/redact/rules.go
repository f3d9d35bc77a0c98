package redact

import "bytes"

// rules are a compiled Config.
type rules struct {
	annotations   globs
	configMapKeys globs
	environment   globs
}

func compileRules(c Config) rules {
	return rules{
		annotations:   compileGlobs(c.Annotations),
		configMapKeys: compileGlobs(c.ConfigMapKeys),
		environment:   compileGlobs(c.Environment),
	}
}

// everywhere reports whether there are rules on names that may stand at any
// depth, so that no value may be stepped over unseen.
func (r *rules) everywhere() bool {
	return len(r.annotations) > 0 || len(r.environment) > 0
}

// mentions reports whether a manifest held as text could hold what one of the
// rules redacts.
func (r *rules) mentions(manifest []byte, configMap bool) bool {
	return len(r.annotations) > 0 && bytes.Contains(manifest, []byte(`"annotations"`)) ||
		len(r.environment) > 0 && bytes.Contains(manifest, []byte(`"env"`)) ||
		configMap && len(r.configMapKeys) > 0 && bytes.Contains(manifest, []byte(`ata"`))
}
