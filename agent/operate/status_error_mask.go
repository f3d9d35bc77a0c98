package operate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// statusCause is one fault that an API server found with what it refused.
type statusCause struct{ Reason, Field, Message string }

// The fields of causes that quote what no manifest or patch of a user holds: of a
// patch that does not fit, API servers tell the whole object that it would make.
const patchField = "patch"

// maskQuotedValues takes out of a refusal what it quotes of the object at a place. The values
// in a Secret are not known here, so that no quoted value passes. Webhooks and what
// else has words of its own are not judged by them.
func (r *statusError) maskQuotedValues(p resourcePath) {
	var messages []string
	hasQuotes := false
	for _, c := range r.causes {
		if c.Field == "" || !p.isSecret() && c.Field != patchField {
			continue
		}
		hasQuotes = true
		messages = append(messages, c.Field+": "+c.messageWithoutValue(p.isSecret()))
	}
	if hasQuotes && !strings.HasPrefix(r.Message, "admission webhook ") && !r.isFieldManagerConflict() {
		r.Message = fmt.Sprintf("%s %q is invalid: %s", p.Kind, p.name, strings.Join(messages, ", "))
	}
	if p.isSecret() && secretDataPattern.MatchString(r.Message) {
		r.Message = fmt.Sprintf("the API server refused the request: its words are not shown, since they quote %s %q", p.Kind, p.name)
	}
}

// secretDataPattern fits texts in which an object or a patch with a Secret's data is quoted: as
// JSON, however often escaped, as Go prints it, or as YAML.
var secretDataPattern = regexp.MustCompile(`[dD]ata\\*"?\s*:(\s|\\+[nrt])*(\{|\w*map\[)|[dD]ata:\s*(\n|\\+n)\s*\\*"?[\w.-]+\\*"?:`)

// messageWithoutValue is what a cause says, without the value that it quotes. A value that
// is not quoted as a string has no end that can be found.
func (c statusCause) messageWithoutValue(secret bool) string {
	prefix, rest, found := strings.Cut(c.Message, ": ")
	if !found || !valueQuotingPrefixes[prefix] {
		return c.Message
	}
	value, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return prefix
	}
	detail := strings.TrimPrefix(rest[len(value):], ": ")
	if secret && (c.Field == patchField || strings.HasPrefix(c.Field, "data[.docker")) {
		detail = decodeErrorPattern.FindString(detail)
	}
	if detail == "" {
		return prefix
	}
	return prefix + ": " + detail
}

// valueQuotingPrefixes holds how the texts of causes begin that quote a value.
var valueQuotingPrefixes = map[string]bool{"Invalid value": true, "Unsupported value": true, "Duplicate value": true, "Not found": true,
	"Too many": true, "Too few": true}

// decodeErrorPattern fits what is wrong with an object that can't be decoded, in words that
// quote nothing of it. API servers before 1.23 quote what stands around the fault.
var decodeErrorPattern = regexp.MustCompile(`json: cannot unmarshal (object|array|string|bool|number) into Go (struct field [\w.]+|value) of type [\w.\[\]]+|` +
	`illegal base64 data at input byte \d+|unrecognized type: \w+`)
