package artifacts

import (
	"path"
	"strings"
)

// attributePattern is the pattern of a line in a .gitattributes file. It replaces that of go-git, which
// panics at patterns that end in a slash, and takes memory for each part.
type attributePattern struct {
	text          string // without the slashes at its start and its end
	anyDirectory  bool   // it has no slash, and is compared with the last part of a path
	directoryOnly bool   // it ends in a slash
	isLiteral     bool   // it has no special characters
}

// parseAttributePattern reports false for patterns that Git ignores.
func parseAttributePattern(text string) (attributePattern, bool) {
	if text == "" || text[0] == '!' {
		return attributePattern{}, false
	}
	p := attributePattern{}
	text, p.directoryOnly = strings.CutSuffix(text, "/")
	p.anyDirectory = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	p.isLiteral = !strings.ContainsAny(text, `*?[\`)
	p.text = strings.Clone(text)
	if !p.isLiteral {
		p.text = withGoClasses(text)
	}
	return p, text != ""
}

// withGoClasses writes "none of these characters" as Go does: [^…] instead of [!…].
func withGoClasses(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		out.WriteByte(text[i])
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		case text[i] == '[' && strings.HasPrefix(text[i+1:], "!"):
			i++
			out.WriteByte('^')
		}
	}
	return out.String()
}

// matches compares the pattern with a path that is relative to the directory of its file.
func (p attributePattern) matches(name string, isDirectory bool) bool {
	if p.directoryOnly && !isDirectory {
		return false
	}
	if p.anyDirectory {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	if p.isLiteral {
		return name == p.text
	}
	return matchParts(p.text, name)
}

// matchParts compares parts with each other. Two stars stand for any number of parts. The last two stars
// of a pattern decide alone where the rest begins, so that nothing is tried twice.
func matchParts(pattern, name string) bool {
	retryPattern := ""
	retryName := ""
	mayRetry := false
	for {
		part, rest, more := strings.Cut(pattern, "/")
		switch {
		case part == "**" && !more:
			return true
		case part == "**":
			retryPattern = rest
			retryName = name
			mayRetry = true
			pattern = rest
			continue
		}
		first, below, deeper := strings.Cut(name, "/")
		matched, err := path.Match(part, first)
		if err != nil {
			return false
		}
		if matched && more && deeper {
			pattern, name = rest, below
			continue
		}
		if matched && !more && !deeper {
			return true
		}
		// What follows the last two stars begins one part later.
		if !mayRetry {
			return false
		}
		_, retryName, mayRetry = strings.Cut(retryName, "/")
		if !mayRetry {
			return false
		}
		pattern, name = retryPattern, retryName
	}
}

// cost is how many characters a comparison may look at.
func (p attributePattern) cost(name string) int {
	if p.isLiteral {
		return 1
	}
	return 1 + len(p.text)*len(name)
}
