// Package configfile reads YAML files into a struct and remembers the position of each setting.
//
// It works in layers: a Search says which files to look for (search.go), a loader reads them with
// their imports (loader.go, imports.go), and each document becomes a tree of nodes with positions
// (documents.go, tree.go). Old paths are renamed (rename.go). All trees together are the Content, which is decoded into
// the struct (decode.go), the later file over the earlier (override.go). Decoding expands
// placeholders (placeholder.go). Field tags define which keys a struct accepts (schema.go), their defaults and which
// values they may have (limits.go); keys of other products are set aside (other_products.go). Environment variables come last and
// override the files (environment.go). What tags cannot say, packages check themselves (checker.go).
//
// All problems are reported together, each with file, line, column and path, because callers must
// distinguish a problem in one list entry, which they can skip, from a problem of everything.
//
// docs/decisions/0064 says why it is not koanf, docs/decisions/0087 and 0147 which files and keys are read.
package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Options configures how a file is read. The zero value is usable.
type Options struct {
	// Env looks up an environment variable; nil means that there are none.
	Env func(string) (string, bool)
	// EnvPrefix is the prefix of environment variables that set keys. With "VEDETTE_AGENT_",
	// VEDETTE_AGENT_CLOUDDRIVER_GRPC sets clouddriver.grpc. If it is "", variables set no keys:
	// Kubernetes injects variables for each Service, so that a Service called "server" would set
	// server.port.
	EnvPrefix string
	// Renames are applied in order before decoding.
	Renames []Rename
	// OtherProductKeys are paths of other products in groups that both have, for example server.tomcat. They and
	// all keys below them are set aside instead of being reported as unknown.
	OtherProductKeys []string
	// Program is the program that is configured, and Reference the page with its keys, for messages.
	Program, Reference string
	// Other is the program whose files users may confuse with those of this one.
	Other OtherProgram
}

func (o Options) lookup(name string) (string, bool) {
	if o.Env == nil {
		return "", false
	}
	return o.Env(name)
}

// Report holds the results of reading files besides the settings.
type Report struct {
	Problems []*Problem
	// Notices are facts about the files that a user should know and that are not errors.
	Notices []string
	// Files are the files that were read, and those that would have been read if they existed, in the
	// order in which they were looked for. If one of them changes or appears, the settings may change.
	Files []File
	// Base is the file that was read first; empty if there was none.
	Base string

	otherProducts []keyPosition       // keys of other products
	settings      map[string]setting  // settings with a value, by path
	entries       map[string]Position // entries of lists, by path
	secrets       secrets
	literals      []string        // secrets that are not references
	openTexts     map[string]bool // values of settings that are not secret, for SecretTexts
}

// setting records where a setting was set, in the file or the environment.
type setting struct {
	at     Position
	unused bool
}

// Err returns all problems as one error, or nil.
func (r *Report) Err() error {
	return Join(r.Problems)
}

// maxProblems limits the problems in an error. Nobody reads more.
const maxProblems = 100

// Join returns several problems as one error in the order of the files, or nil if there are none. If
// there are too many, those of a file as a whole are kept before others.
func Join(problems []*Problem) error {
	problems = slices.Clone(problems)
	omitted := len(problems) - maxProblems
	if omitted > 0 {
		slices.SortStableFunc(problems, func(a, b *Problem) int { return cmp.Compare(min(1, len(a.Path)), min(1, len(b.Path))) })
		problems = problems[:maxProblems]
	}
	slices.SortStableFunc(problems, byPosition)
	var errs []error
	for _, p := range problems {
		errs = append(errs, p)
	}
	if omitted > 0 {
		errs = append(errs, fmt.Errorf("and %d more problems", omitted))
	}
	return errors.Join(errs...)
}

// Unused returns each key that is set and has no effect, with the reason, as "agent.yml:7:3: hub.auth.token:
// The predecessor's cloud service no longer exists.", in the order of the file. Reasons of keys of other products
// say what has their effect here.
func (r *Report) Unused(reasons Reasons) []string {
	type unusedKey struct {
		keyPosition
		reason string
	}
	var unused []unusedKey
	for _, key := range r.otherProducts {
		reason := otherProductReason
		if _, known := reasons.of(key.path); known != unusedReason {
			reason += " " + known
		}
		unused = append(unused, unusedKey{key, reason})
	}
	for path, s := range r.settings {
		if s.unused {
			_, reason := reasons.of(path)
			unused = append(unused, unusedKey{keyPosition{path, s.at}, reason})
		}
	}
	slices.SortFunc(unused, func(a, b unusedKey) int { return a.compare(b.keyPosition) })
	lines := make([]string, len(unused))
	for i, key := range unused {
		lines[i] = fmt.Sprintf("%s: %s: %s", key.at, printable(key.path), key.reason)
	}
	return lines
}

// otherProductReason is why keys of other products have no effect.
const otherProductReason = "It belongs to another product."

// PositionOf returns the position of a setting or a list entry, or the zero Position if it is not
// set.
func (r *Report) PositionOf(path string) Position {
	if at, ok := r.entries[path]; ok {
		return at
	}
	return r.settings[path].at
}

// IsSet reports whether the setting at a path is set.
func (r *Report) IsSet(path string) bool {
	_, ok := r.settings[path]
	return ok
}

// HasProblem reports whether there is a problem at a path or below it.
func (r *Report) HasProblem(path string) bool {
	return slices.ContainsFunc(r.Problems, func(p *Problem) bool { return p.IsWithin(path) })
}

// addAboutKey adds a problem whose message quotes keys and no values, so that no secret has to be
// searched for in it.
func (r *Report) addAboutKey(at Position, path, format string, args ...any) {
	r.Problems = append(r.Problems, &Problem{At: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Add adds a problem that the caller found after decoding.
func (r *Report) Add(at Position, path, format string, args ...any) {
	message := r.secrets.hide(path, fmt.Sprintf(format, args...))
	r.Problems = append(r.Problems, &Problem{At: at, Path: path, Message: message})
}

// AddAt adds a problem at the position of the setting at a path.
func (r *Report) AddAt(path, format string, args ...any) {
	r.Add(r.PositionOf(path), path, format, args...)
}

// Hide masks the secrets of the configuration in texts about it.
func (r *Report) Hide(texts []string) []string {
	hidden := make([]string, len(texts))
	for i, text := range texts {
		hidden[i] = r.secrets.hide("", text)
	}
	return hidden
}

// keyPosition is a key and where it is set.
type keyPosition struct {
	path string
	at   Position
}

func (k keyPosition) compare(other keyPosition) int {
	return cmp.Or(k.at.compare(other.at), cmp.Compare(k.path, other.path))
}

// Content is what the files of a configuration contain. They are read and parsed once, however often their
// content is decoded.
type Content struct {
	report     *Report // of reading
	options    Options
	roots      []*node // later ones override
	originals  []*node // roots before renames, in which placeholders are looked up
	expansions expansionBudget
}

// Read reads the files of a search for a configuration of the type of config.
func Read(s Search, o Options, config any) *Content {
	l := newLoader(o, config, readFile)
	l.search(s)
	return l.content()
}

// ReadData is like Read for data that was read already. Positions use name as the file. Imports of
// other files are problems.
func ReadData(name string, data []byte, o Options, config any) *Content {
	l := newLoader(o, config, func(path string) ([]byte, error) {
		if path == name {
			return data, nil
		}
		return nil, errNotFound
	})
	l.addFile(l.file(name))
	return l.content()
}

// Parse reads data without references to secrets into the struct that into points to.
func Parse(name string, data []byte, o Options, into any) *Report {
	return ReadData(name, data, o, into).Decode(into, nil)
}

// Getenv returns what looks up an environment variable, or "". It does not keep the content of the files in memory.
func (s *Content) Getenv() func(name string) string {
	options := s.options
	return func(name string) string {
		value, _ := options.lookup(name)
		return value
	}
}

// Decode fills the struct that into points to, after it set the defaults of the struct's tags. It decodes everything
// that it can even if there are problems, so that valid entries of a list are not lost.
//
// secrets returns what replaces a reference to a secret (encrypted:… or encryptedFile:…). Its error names the reference. Nil means that
// references are rejected. References are resolved while decoding, and not in the tree before: only the structs tell which keys have an
// effect, and files that are copied from Clouddriver have references in groups that mean nothing here. Fetching these would ask for
// rights that nobody needs, or wait for an engine that this program cannot reach.
func (s *Content) Decode(into any, secrets func(reference string) (string, error)) *Report {
	report, expansions := *s.report, s.expansions
	report.Problems, report.Notices = slices.Clone(report.Problems), slices.Clone(report.Notices)
	report.settings, report.entries = map[string]setting{}, map[string]Position{}
	d := &decoder{report: &report, options: s.options, resolve: secrets, originals: s.originals, expansions: &expansions}
	target := reflect.ValueOf(into).Elem()
	setDefaults(target)
	d.decodeStruct(location{}, s.roots, target)
	if s.options.EnvPrefix != "" {
		d.applyEnvironment(target)
	}
	d.applyFallbackVariables(target)
	report.checkLimits(location{}, target)
	return &report
}
