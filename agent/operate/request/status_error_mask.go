package request

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette/agent/kube"
)

// patchField is the field of causes that quote more than the user's patch: if the result of a patch
// is invalid, API servers quote the whole object that would result.
const patchField = "patch"

// maskQuotedValues removes the values that an error quotes of the live object. Those of a Secret
// are not known here, so all quoted values are removed, and so are those of other kinds if rules redact some of
// their values: of a Job, API servers quote the whole template. The messages of webhooks and of field
// manager conflicts are kept, because they do not have the form of causes.
func (e *StatusError) maskQuotedValues(p Path, hidesValues bool) {
	var messages []string
	hasQuotes := false
	for _, c := range e.causes {
		if c.Field == "" || !p.IsSecret() && !hidesValues && c.Field != patchField {
			continue
		}
		hasQuotes = true
		messages = append(messages, c.Field+": "+messageWithoutValue(c, p.IsSecret()))
	}
	if hasQuotes && !strings.HasPrefix(e.Message, "admission webhook ") && !e.isFieldManagerConflict() {
		e.Message = fmt.Sprintf("%s %q is invalid: %s", p.Kind, p.Name, strings.Join(messages, ", "))
	}
	if !p.IsSecret() && len(e.causes) == 0 && !strings.HasPrefix(e.Message, "admission webhook ") {
		e.Message = withoutGoMaps(e.Message)
	}
	if p.IsSecret() && secretDataPattern.MatchString(e.Message) {
		e.Message = fmt.Sprintf("the API server rejected the request; its message is not shown, because it quotes %s %q", p.Kind, p.Name)
	}
}

// withoutGoMaps removes the objects that a message quotes as Go prints them: if the elements of a list do not fit together, API servers
// quote those of the live object, with values that redaction removes.
func withoutGoMaps(message string) string {
	start := goMapPattern.FindStringIndex(message)
	if start == nil {
		return message
	}
	return message[:start[0]] + "…" + message[strings.LastIndex(message, "]")+1:]
}

// goMapPattern matches the beginning of a map of any values, or of a list of them, as Go prints it. The literals of types, as in
// map[string]string{"a":"b"}, are what the user's own manifest has.
var goMapPattern = regexp.MustCompile(`\[*map\[[^\]{]*:`)

// secretDataPattern matches texts that quote an object or a patch with the data of a Secret: as
// JSON, however often escaped, as Go prints it, or as YAML.
var secretDataPattern = regexp.MustCompile(`[dD]ata\\*"?\s*:(\s|\\+[nrt])*(\{|\w*map\[)|[dD]ata:\s*(\n|\\+n)\s*\\*"?[\w.-]+\\*"?:`)

// messageWithoutValue returns the message of a cause without the value that it quotes. If the value
// is not a quoted string, its end is unknown, so the rest of the message is removed too.
func messageWithoutValue(c kube.StatusCause, secret bool) string {
	prefix, rest, found := strings.Cut(c.Message, ": ")
	if !found || !valueQuotingPrefixes[prefix] {
		return c.Message
	}
	value, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return prefix
	}
	detail := strings.TrimPrefix(rest[len(value):], ": ")
	if c.Field == patchField {
		detail, _, _ = strings.Cut(detail, ", error found in #") // API servers before 1.23 quote the text around the error
	}
	if secret && (c.Field == patchField || strings.HasPrefix(c.Field, "data[.docker")) {
		detail = decodeErrorPattern.FindString(detail)
	}
	if detail == "" {
		return prefix
	}
	return prefix + ": " + detail
}

// valueQuotingPrefixes are the beginnings of the messages that quote a value.
var valueQuotingPrefixes = map[string]bool{"Invalid value": true, "Unsupported value": true, "Duplicate value": true, "Not found": true,
	"Too many": true, "Too few": true}

// decodeErrorPattern matches the part of decoding errors that quotes nothing of the object.
var decodeErrorPattern = regexp.MustCompile(`json: cannot unmarshal (object|array|string|bool|number) into Go (struct field [\w.]+|value) of type [\w.\[\]]+|` +
	`illegal base64 data at input byte \d+|unrecognized type: \w+`)
