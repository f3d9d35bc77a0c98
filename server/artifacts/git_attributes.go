package artifacts

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// exportIgnore is the attribute of what archives leave out. Attributes have no other effect on them.
const exportIgnore = "export-ignore"

// Limits of .gitattributes files. Git has the one of lines, and ignores longer ones.
const (
	maxAttributeLine  = 2048
	maxAttributeBytes = 1 << 20       // of a file
	maxMacroBytes     = 64 << 10      // of all definitions of macros
	maxRuleBytes      = 1 << 20       // of the rules that an archive keeps, with ruleBytes for each
	ruleBytes         = 128           // what a rule takes besides its text
	maxMatchSteps     = 2_000_000_000 // about as many nanoseconds
)

var (
	errTooManyRules  = fmt.Errorf("the .gitattributes files have more than %d KiB of lines with %s: use fewer and more general patterns", maxRuleBytes>>10, exportIgnore)
	errTooManyMacros = fmt.Errorf("the .gitattributes file defines more than %d KiB of macros", maxMacroBytes>>10)
	errAttributeFile = fmt.Errorf("the .gitattributes file is larger than %d MiB", maxAttributeBytes>>20)
	errMatchSteps    = errors.New("the patterns of the .gitattributes files take too long to compare with all paths: use fewer and simpler patterns")
)

// attributeValue is what a line says of an attribute. An attribute with a text as its value is not true.
type attributeValue struct {
	name  string
	value byte // '+' true, '-' false, '!' unspecified
}

// exportRule is a line that says something of export-ignore, directly or by a macro.
type exportRule struct {
	pattern attributePattern
	values  []attributeValue
}

// exportRules are those of one directory and of the directories above. The rules of a file are shared by all
// directories that have it, because patterns are relative to the directory: a tree of a few kilobytes can have
// the same file in millions of directories.
type exportRules struct {
	above *exportRules
	depth int          // of the directory: the number of parts that its path has
	rules []exportRule // later ones override earlier ones
}

// exportAttributes reads .gitattributes files and decides what an archive leaves out. All files of an
// archive share its limits.
type exportAttributes struct {
	macros    map[string][]attributeValue
	ruleBytes int // that are kept
	steps     int // that were taken to compare patterns
}

// read returns the rules of a file. Macros can be defined in the root of a repository only. Lines that
// Git ignores are ignored.
func (a *exportAttributes) read(r io.Reader, isRoot bool) ([]exportRule, error) {
	lines, err := attributeLines(r)
	if err != nil {
		return nil, err
	}
	if a.steps += len(lines); a.steps > maxMatchSteps {
		return nil, errMatchSteps
	}
	if isRoot {
		if err := a.readMacros(lines); err != nil {
			return nil, err
		}
	}
	var rules []exportRule
	for line := range strings.Lines(lines) {
		rule, ok := a.parse(strings.TrimSpace(line))
		if !ok {
			continue
		}
		if a.ruleBytes += len(line) + ruleBytes; a.ruleBytes > maxRuleBytes {
			return nil, errTooManyRules
		}
		rules = append(rules, rule)
	}
	return slices.Clip(rules), nil
}

// attributeLines returns the text of a file. Half of a file would not leave out what the rest names.
func attributeLines(r io.Reader) (string, error) {
	limited := &io.LimitedReader{R: r, N: maxAttributeBytes + 1}
	text, err := io.ReadAll(limited)
	if err != nil {
		return "", fmt.Errorf("read .gitattributes: %w", err)
	}
	if limited.N == 0 {
		return "", errAttributeFile
	}
	return string(text), nil
}

const macroPrefix = "[attr]"

// readMacros keeps all macros, because any of them may name export-ignore, or another one that does.
func (a *exportAttributes) readMacros(lines string) error {
	a.macros = map[string][]attributeValue{}
	size := 0
	for line := range strings.Lines(lines) {
		if definition := macroDefinition(line); definition != nil {
			if size += len(line) + ruleBytes; size > maxMacroBytes {
				return errTooManyMacros
			}
			a.macros[strings.Clone(definition[0])] = nil
		}
	}
	for line := range strings.Lines(lines) {
		if definition := macroDefinition(line); definition != nil {
			a.macros[definition[0]], _ = a.values(definition[1:])
		}
	}
	return nil
}

// macroDefinition returns the name of the macro that a line defines, and its attributes.
func macroDefinition(line string) []string {
	definition, ok := strings.CutPrefix(strings.TrimSpace(line), macroPrefix)
	fields := strings.Fields(definition)
	if !ok || len(line) > maxAttributeLine || len(fields) == 0 || !isAttributeName(fields[0]) {
		return nil
	}
	return fields
}

// parse returns the rule of a line. It reports false for a line without effect on archives.
func (a *exportAttributes) parse(line string) (exportRule, bool) {
	if line == "" || line[0] == '#' || len(line) > maxAttributeLine || strings.HasPrefix(line, macroPrefix) {
		return exportRule{}, false
	}
	name, rest := cutPattern(line)
	pattern, ok := parseAttributePattern(name)
	if !ok {
		return exportRule{}, false
	}
	values, ok := a.values(strings.Fields(rest))
	return exportRule{pattern, values}, ok && len(values) > 0
}

// cutPattern separates the pattern of a line, which may be quoted as in C, from its attributes.
func cutPattern(line string) (pattern, rest string) {
	if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
		if text, err := strconv.Unquote(quoted); err == nil {
			return text, line[len(quoted):]
		}
	}
	if i := strings.IndexAny(line, " \t\r"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// values returns what attributes say of export-ignore and of macros. It reports false if one is invalid.
func (a *exportAttributes) values(fields []string) ([]attributeValue, bool) {
	var values []attributeValue
	for _, field := range fields {
		v := attributeValue{name: field, value: '+'}
		if field[0] == '-' || field[0] == '!' {
			v = attributeValue{field[1:], field[0]}
		} else if name, _, ok := strings.Cut(field, "="); ok {
			v = attributeValue{name, '-'}
		}
		if !isAttributeName(v.name) {
			return nil, false
		}
		if _, isMacro := a.macros[v.name]; isMacro || v.name == exportIgnore {
			values = append(values, attributeValue{strings.Clone(v.name), v.value})
		}
	}
	return values, true
}

func isAttributeName(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// ignores reports whether archives leave a path out. As in Git, the last line that matches decides, an
// attribute that was decided is not decided again by a macro, and of one line the last attribute counts.
func (a *exportAttributes) ignores(rules *exportRules, name string, isDirectory bool) (bool, error) {
	decided := map[string]byte{}
	for ; rules != nil; rules = rules.above {
		relative := cutParts(name, rules.depth)
		for _, rule := range slices.Backward(rules.rules) {
			if a.steps += rule.pattern.cost(relative); a.steps > maxMatchSteps {
				return false, errMatchSteps
			}
			if !rule.pattern.matches(relative, isDirectory) {
				continue
			}
			a.decide(decided, rule.values)
			if value := decided[exportIgnore]; value != 0 {
				return value == '+', nil
			}
		}
	}
	return false, nil
}

func (a *exportAttributes) decide(decided map[string]byte, values []attributeValue) {
	for _, v := range slices.Backward(values) {
		if decided[v.name] != 0 {
			continue
		}
		decided[v.name] = v.value
		if v.value == '+' {
			a.decide(decided, a.macros[v.name])
		}
	}
}

// cutParts removes the first parts of a path.
func cutParts(name string, parts int) string {
	for range parts {
		_, name, _ = strings.Cut(name, "/")
	}
	return name
}
