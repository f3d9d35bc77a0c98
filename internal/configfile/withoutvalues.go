package configfile

import (
	"regexp"
	"strconv"
	"strings"
)

// quotedText matches what messages quote: texts in Go's syntax, and names in messages of the YAML
// library.
var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"…?|'[^'\s]*'`)

// WithoutValues returns the text of an error of Load for readers who must not see the values of a
// configuration of a type: of the texts that it quotes, only known keys remain. A value in the wrong
// place, such as the password in `{token:hunter2}`, looks like a key.
func WithoutValues(err error, config any) string {
	known := segmentsOf(config)
	lines := strings.Split(err.Error(), "\n") // a quote without an end affects its own problem only
	for i, line := range lines {
		lines[i] = quotedText.ReplaceAllStringFunc(line, func(quoted string) string { return knownPart(quoted, known) })
	}
	return strings.Join(lines, "\n")
}

// segmentsOf returns the names of all keys, without the groups around them.
func segmentsOf(config any) map[string]bool {
	segments := map[string]bool{}
	for _, key := range Keys(config) {
		for _, name := range append(key.Aliases, key.Path) {
			for segment := range strings.SplitSeq(strings.ReplaceAll(name, "[]", ""), ".") {
				segments[strings.ToLower(segment)] = true
			}
		}
	}
	return segments
}

var indexes = regexp.MustCompile(`(\[\d+\])*$`)

// knownPart returns a quoted path up to its first unknown segment.
func knownPart(quoted string, known map[string]bool) string {
	path, err := strconv.Unquote(quoted)
	if err != nil {
		return strconv.Quote(mask)
	}
	segments := strings.Split(path, ".")
	for i, segment := range segments {
		if !known[strings.ToLower(indexes.ReplaceAllString(segment, ""))] {
			return strconv.Quote(strings.Join(append(segments[:i:i], mask), "."))
		}
	}
	return quoted
}
