package textcheck

import (
	"net/url"
	"strings"
)

// IsPathSegment reports whether a text, once it is escaped, is one segment of a URL's path for everyone
// who reads it. Proxies and servers decode a path, some of them twice, remove what follows a semicolon,
// and then resolve dots. The text may contain a slash, as users of directories do, but no such segment.
func IsPathSegment(text string) bool {
	if text == "" {
		return false
	}
	for range 3 {
		for segment := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\\' }) {
			if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
				return false
			}
		}
		decoded, err := url.PathUnescape(text)
		if err != nil || decoded == text {
			return true
		}
		text = decoded
	}
	return false // who escapes a name so often wants to be misread
}
