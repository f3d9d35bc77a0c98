package configfile

import (
	"strings"

	masking "github.com/vedette-io/vedette/internal/mask"
)

// The prefixes of references to secrets.
const (
	secretPrefix     = "encrypted:"
	secretFilePrefix = "encryptedFile:"
)

// secretReferencePrefix returns the prefix of a reference to a secret, or "".
func secretReferencePrefix(text string) string {
	for _, prefix := range []string{secretPrefix, secretFilePrefix} {
		if strings.HasPrefix(text, prefix) {
			return prefix
		}
	}
	return ""
}

// resolveSecret returns what replaces a reference. References are rejected if nothing resolves them,
// because otherwise the reference itself would be used as a password or a path.
func (d *decoder) resolveSecret(p location, n *node, reference string) (string, bool) {
	prefix := secretReferencePrefix(reference)
	if d.options.Secrets == nil {
		d.report.Add(n.at, p.path, "%q is an %s reference, which this version cannot resolve: use the value itself or a ${PLACEHOLDER}", p.path,
			prefix)
		return "", false
	}
	value, err := d.options.Secrets(reference)
	if err != nil {
		d.report.Add(n.at, p.path, "%q: %s", p.path, err)
		return "", false
	}
	if prefix == secretPrefix {
		d.report.secrets.add(p.path, value)
	}
	return value, true
}

// secrets are the values that came from references. They are not shown, whatever the type of
// their setting.
type secrets struct {
	values []string
	paths  []string
}

func (s *secrets) add(path string, values ...string) {
	if len(values) > 0 {
		s.values, s.paths = append(s.values, values...), append(s.paths, path)
	}
}

// isWithin reports whether the setting at a path has a secret.
func (s *secrets) isWithin(path string) bool {
	for _, secretPath := range s.paths {
		if (&Problem{Path: secretPath}).IsWithin(path) {
			return true
		}
	}
	return false
}

// hide masks the secrets in a message.
func (s *secrets) hide(message string) string {
	if len(s.values) == 0 {
		return message
	}
	return masking.TextValues(s.values).Mask(message)
}
