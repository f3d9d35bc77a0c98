package redact

import "bytes"

// rules is a compiled Config.
type rules struct {
	annotations   globs
	configMapKeys globs
	environment   globs
	// secretAnnotations match further annotations that Secrets keep.
	secretAnnotations globs
}

func compileRules(c Config) rules {
	return rules{
		annotations:   compileGlobs(c.Annotations),
		configMapKeys: compileGlobs(c.ConfigMapKeys),
		environment:   compileGlobs(c.Environment),

		secretAnnotations: compileGlobs(c.SecretAnnotations),
	}
}

// anyDepth reports whether there are rules for names at any depth, so that no value may be
// skipped without a look inside.
func (r *rules) anyDepth() bool {
	return len(r.annotations) > 0 || len(r.environment) > 0
}

// mayMatchText reports whether a manifest in text form could contain a value that a rule
// redacts.
func (r *rules) mayMatchText(manifest []byte, configMap bool) bool {
	return len(r.annotations) > 0 && hasMember(manifest, "annotations") ||
		len(r.environment) > 0 && hasMember(manifest, "env") ||
		configMap && len(r.configMapKeys) > 0 && (hasMember(manifest, "data") || hasMember(manifest, "binaryData"))
}

// hasMember reports whether text could be JSON or YAML with a member of that name.
func hasMember(text []byte, name string) bool {
	return bytes.Contains(text, []byte(`"`+name+`"`)) ||
		bytes.Contains(text, []byte(name+": ")) || bytes.Contains(text, []byte(name+":\n"))
}
