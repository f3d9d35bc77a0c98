package disclosure

import (
	"slices"
	"strconv"
	"strings"
)

// jsonPointer is a JSON pointer: the names and indexes on the path to a value.
type jsonPointer []string

// parseJSONPointer reads a pointer as API servers do, which ignore the text before the first slash.
// A pointer without a slash means the whole object.
func parseJSONPointer(text string) jsonPointer {
	_, text, found := strings.Cut(text, "/")
	if !found {
		return nil
	}
	parts := jsonPointer(strings.Split(text, "/"))
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}

// overlaps reports whether one of two values may be a part of the other, or the same. All indexes
// are treated as equal, because earlier steps may have moved the elements of lists.
func (p jsonPointer) overlaps(other jsonPointer) bool {
	for i := range min(len(p), len(other)) {
		if p[i] != other[i] && !(isIndex(p[i]) && isIndex(other[i])) {
			return false
		}
	}
	return true
}

// The members on which the redaction of values beside them depends: the name of an environment variable, and the
// kind and the apiVersion of an embedded Secret.
const (
	nameMember       = "name"
	kindMember       = "kind"
	apiVersionMember = "apiVersion"
)

// isDecisive reports whether the redaction of other values may depend on the value of the pointer.
func (p jsonPointer) isDecisive() bool {
	return len(p) > 0 && slices.Contains([]string{nameMember, kindMember, apiVersionMember}, p[len(p)-1])
}

// decidesRedaction reports whether a redacted value would not be redacted if the value of the pointer was another one.
func (p jsonPointer) decidesRedaction(redacted jsonPointer) bool {
	parent := p[:len(p)-1]
	if p[len(p)-1] == nameMember {
		return len(redacted) == len(p) && parent.overlaps(redacted)
	}
	return len(redacted) >= len(p) && parent.overlaps(redacted) && len(parent) > 0
}

func isIndex(part string) bool {
	_, err := strconv.Atoi(part)
	return err == nil || part == "-"
}
