package operate

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// cause is one fault that an API server found with what it refused.
type cause struct{ Reason, Field, Message string }

// The fields of causes that quote what no manifest or patch of a user holds: of a
// patch that does not fit, API servers tell the whole object that it would make.
const patchField = "patch"

// conceal takes out of a refusal what it quotes of the object at a place. The values
// in a Secret are not known here, so that no quoted value passes. Webhooks and what
// else has words of its own are not judged by them.
func (r *refusal) conceal(p place) {
	var faults []string
	quotes := false
	for _, c := range r.causes {
		if c.Field == "" || !p.secret() && c.Field != patchField {
			continue
		}
		quotes = true
		faults = append(faults, c.Field+": "+c.withoutValue(p.secret()))
	}
	if quotes && !strings.HasPrefix(r.Message, "admission webhook ") && !r.fields() {
		r.Message = fmt.Sprintf("%s %q is invalid: %s", p.Kind, p.name, strings.Join(faults, ", "))
	}
	if p.secret() && holdsData.MatchString(r.Message) {
		r.Message = fmt.Sprintf("the API server refused the request: its words are not shown, since they quote %s %q", p.Kind, p.name)
	}
}

// withholdWarnings takes away the warnings about a Secret in which its data is quoted.
func withholdWarnings(ctx context.Context) {
	veilWarnings(ctx, func(texts []string) []string {
		for i, text := range texts {
			if holdsData.MatchString(text) {
				texts[i] = "a warning is not shown, since it quotes a Secret"
			}
		}
		return texts
	})
}

// holdsData fits texts in which an object or a patch with a Secret's data is quoted: as
// JSON, however often escaped, as Go prints it, or as YAML.
var holdsData = regexp.MustCompile(`[dD]ata\\*"?\s*:(\s|\\+[nrt])*(\{|\w*map\[)|[dD]ata:\s*(\n|\\+n)\s*\\*"?[\w.-]+\\*"?:`)

// withoutValue is what a cause says, without the value that it quotes. A value that
// is not quoted as a string has no end that can be found.
func (c cause) withoutValue(secret bool) string {
	sort, rest, told := strings.Cut(c.Message, ": ")
	if !told || !quotesValue[sort] {
		return c.Message
	}
	value, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return sort
	}
	detail := strings.TrimPrefix(rest[len(value):], ": ")
	if secret && (c.Field == patchField || strings.HasPrefix(c.Field, "data[.docker")) {
		detail = plainFault.FindString(detail)
	}
	if detail == "" {
		return sort
	}
	return sort + ": " + detail
}

// quotesValue holds how the texts of causes begin that quote a value.
var quotesValue = map[string]bool{"Invalid value": true, "Unsupported value": true, "Duplicate value": true, "Not found": true,
	"Too many": true, "Too few": true}

// plainFault fits what is wrong with an object that can't be decoded, in words that
// quote nothing of it. API servers before 1.23 quote what stands around the fault.
var plainFault = regexp.MustCompile(`json: cannot unmarshal (object|array|string|bool|number) into Go (struct field [\w.]+|value) of type [\w.\[\]]+|` +
	`illegal base64 data at input byte \d+|unrecognized type: \w+`)
