package configfile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Position is the origin of a setting.
type Position struct {
	File   string // file name without the directory, or "environment variable X"
	Line   int    // starting at 1; 0 if unknown
	Column int    // starting at 1
}

// String returns "agent.yml:7:3", or less if less is known.
func (p Position) String() string {
	file := printable(p.File)
	switch {
	case file == "":
		return FromDefault
	case p.Line == 0:
		return file
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", file, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column)
}

// printable returns a text of a file as it may be printed in a line. A line break could forge another
// line, and an escape sequence could change what a terminal shows.
func printable(text string) string {
	isOther := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, isOther) {
		return text
	}
	return strconv.Quote(text)
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Problem is one problem of a file. It is an error that may be shown to users.
type Problem struct {
	At      Position
	Path    string // for example "kubernetes.accounts[0].name"; "" for the file as a whole
	Message string // names the key, what is wrong and what to do
}

// Error returns the position and the message, for example "agent.yml:7:3: unknown key …".
func (p *Problem) Error() string { return p.At.String() + ": " + p.Message }

// IsWithin reports whether the problem is at a path or below it.
func (p *Problem) IsWithin(path string) bool {
	rest, found := strings.CutPrefix(p.Path, path)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func byPosition(a, b *Problem) int { return a.At.compare(b.At) }
