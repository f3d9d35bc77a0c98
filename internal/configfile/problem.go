package configfile

import (
	"cmp"
	"fmt"
	"strings"
)

// Position says where a setting comes from.
type Position struct {
	File   string // its name without the folder, or "environment variable X"
	Line   int    // from 1; 0 where there is no line to name
	Column int    // from 1
}

// String returns "agent.yml:7:3", or less where less is known.
func (p Position) String() string {
	switch {
	case p.File == "":
		return "default"
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Problem is one thing wrong with a file. It is an error that may be shown.
type Problem struct {
	At      Position
	Path    string // "kubernetes.accounts[0].name"; empty for the file as a whole
	Message string // says which key, what is wrong and what to do
}

// Error returns "agent.yml:7:3: unknown key …".
func (p *Problem) Error() string { return p.At.String() + ": " + p.Message }

// IsWithin reports whether the problem lies at a path or below it.
func (p *Problem) IsWithin(path string) bool {
	rest, found := strings.CutPrefix(p.Path, path)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func byPosition(a, b *Problem) int { return a.At.compare(b.At) }
