package secret

import (
	"slices"
	"strings"
	"unicode"

	"github.com/vedette-io/vedette"
)

const (
	valuePrefix = "encrypted:"
	filePrefix  = "encryptedFile:"
	noopEngine  = "noop"
)

// Reference names a secret.
type Reference struct {
	Engine string
	IsFile bool   // whether the secret is to be written to a file
	Spec   string // what follows the engine's name and the first "!"

	text string
}

// Parse parses the beginning of a reference; Params parses the rest. White space around it is
// ignored.
func Parse(text string) (Reference, error) {
	r := Reference{text: strings.TrimSpace(text)}
	rest, isFile := strings.CutPrefix(r.text, filePrefix)
	if !isFile {
		var isValue bool
		if rest, isValue = strings.CutPrefix(r.text, valuePrefix); !isValue {
			return r, vedette.Errorf(vedette.Invalid, "a reference to a secret must start with %s or %s", valuePrefix, filePrefix)
		}
	}
	r.IsFile = isFile
	r.Engine, r.Spec, _ = strings.Cut(rest, "!")
	if r.Engine == "" {
		return r, vedette.Errorf(vedette.Invalid, "%s names no engine: write it as %sENGINE!KEY:VALUE", r, valuePrefix)
	}
	return r, nil
}

// maxShown limits a reference in messages, in bytes.
const maxShown = 300

// String returns the reference for messages. The secret in a reference of engine noop is masked, and
// so is a reference without an engine, because it may be a secret that was written in its place.
func (r Reference) String() string {
	prefix := valuePrefix
	if r.IsFile {
		prefix = filePrefix
	}
	if r.Engine == noopEngine || r.Engine == "" || !isEngineName(r.Engine) {
		return prefix + shownEngine(r.Engine) + "***"
	}
	shown := strings.Map(withoutControl, r.text)
	if len(shown) > maxShown {
		return strings.ToValidUTF8(shown[:maxShown], "") + "…"
	}
	return shown
}

// withoutControl replaces what could change a terminal or forge a line of a log.
func withoutControl(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

func shownEngine(engine string) string {
	if engine == noopEngine {
		return noopEngine + "!"
	}
	return ""
}

// isEngineName reports whether a text could be the name of an engine, and not a secret.
func isEngineName(name string) bool {
	isOther := func(c rune) bool { return c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') }
	return len(name) <= 30 && !strings.ContainsFunc(name, isOther)
}

// Params are the parameters of a reference.
type Params map[string]string

// Params parses the parameters: those that are required, and those that may be there. A value may
// contain colons.
func (r Reference) Params(required, optional []string) (Params, error) {
	params := Params{}
	for part := range strings.SplitSeq(r.Spec, "!") {
		key, value, found := strings.Cut(part, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !found:
			return nil, r.invalid("has a part without a colon", required, optional)
		case !slices.Contains(required, key) && !slices.Contains(optional, key):
			return nil, r.invalid("has the parameter "+key+", which "+r.Engine+" does not have", required, optional)
		case params[key] != "":
			return nil, r.invalid("has the parameter "+key+" twice", required, optional)
		}
		params[key] = value
	}
	for _, key := range required {
		if params[key] == "" {
			return nil, r.invalid("lacks the parameter "+key, required, optional)
		}
	}
	return params, nil
}

func (r Reference) invalid(problem string, required, optional []string) error {
	form := valuePrefix + r.Engine
	for _, key := range required {
		form += "!" + key + ":…"
	}
	for _, key := range optional {
		form += "[!" + key + ":…]"
	}
	return vedette.Errorf(vedette.Invalid, "%s %s: write it as %s", r, problem, form)
}
