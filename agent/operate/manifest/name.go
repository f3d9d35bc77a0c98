package manifest

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// CheckName rejects names with which the URL of an object would be another path.
func CheckName(name string) error {
	if name == "" {
		return vedette.Errorf(vedette.Invalid, "the operation names no object")
	}
	if !IsPathSegment(name) {
		return vedette.Errorf(vedette.Invalid, "%q is not a valid name of an object", name)
	}
	return nil
}

// IsPathSegment reports whether a text is one segment of a URL's path as it is, unescaped.
func IsPathSegment(text string) bool {
	return text != "." && text != ".." && !strings.ContainsAny(text, "/%?#\x00\r\n")
}
