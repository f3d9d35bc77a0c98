package configfile

import (
	"slices"
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

// containsReference reports whether a text has a reference anywhere, as a URL in which a placeholder was
// replaced.
func containsReference(text string) bool {
	return strings.Contains(text, secretPrefix) || strings.Contains(text, secretFilePrefix)
}

// resolveSecret returns what replaces a reference. References are rejected if nothing resolves them,
// because otherwise the reference itself would be used as a password or a path.
func (d *decoder) resolveSecret(p location, n *node, reference string) (string, bool) {
	prefix := secretReferencePrefix(reference)
	if d.resolve == nil {
		d.report.Add(n.at, p.path, "%q is an %s reference, which this version cannot resolve: use the value itself or a ${PLACEHOLDER}", p.path,
			prefix)
		return "", false
	}
	value, err := d.resolve(reference)
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
	common  []string            // of settings outside of lists
	entries map[string][]string // of settings in an entry of a list, by the path of the entry
	within  map[string]bool     // paths of settings with secrets, and of all lists and groups that contain them
}

func (s *secrets) add(path string, values ...string) {
	if len(values) == 0 {
		return
	}
	if entry := entryOf(path); entry != "" {
		if s.entries == nil {
			s.entries = map[string][]string{}
		}
		s.entries[entry] = append(s.entries[entry], values...)
	} else {
		s.common = append(s.common, values...)
	}
	if s.within == nil {
		s.within = map[string]bool{}
	}
	for end := len(path); end > 0 && !s.within[path[:end]]; end = strings.LastIndexAny(path[:end], ".[") {
		s.within[path[:end]] = true
	}
}

// entryOf returns the path of the outermost entry of a list in which a setting is; "" if there is none.
func entryOf(path string) string {
	end := strings.IndexByte(path, ']')
	if end < 0 {
		return ""
	}
	return path[:end+1]
}

func (s *secrets) isWithin(path string) bool { return s.within[path] }

// hide masks the secrets in a message about a path. Messages about an entry of a list quote no other
// entries, so that hundreds of accounts with secrets do not make each message expensive.
func (s *secrets) hide(path, message string) string {
	values := slices.Clone(s.common)
	if entry := entryOf(path); entry != "" {
		values = append(values, s.entries[entry]...)
	} else {
		for _, more := range s.entries {
			values = append(values, more...)
		}
	}
	message = masking.URLs(message)
	if len(values) == 0 {
		return message
	}
	return masking.TextValues(values).Mask(message)
}
