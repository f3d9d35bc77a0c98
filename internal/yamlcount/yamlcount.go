// Package yamlcount estimates what a YAML document becomes before it is parsed. The parser of YAML
// builds a tree of all of a document, and takes some 250 bytes of memory for a value of two.
package yamlcount

// NodeBytes is what a value counted by Values takes at most when it was parsed.
const NodeBytes = 256

// MaxManifest is how many values the YAML of one manifest may have: ten times as many as the largest
// CustomResourceDefinitions. Its nodes then take 50 MiB while it is converted.
const MaxManifest = 200_000

// Values returns about how many values a document has at most, counting keys too: the number of characters
// that can begin one. It does not expand aliases.
func Values(text []byte) (count int) {
	for i, c := range text {
		switch c {
		case ',', '[', '{', '\n':
			count++
		case ':', '-', '?':
			if i+1 == len(text) || isSpace(text[i+1]) {
				count++
			}
		}
	}
	return count
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
