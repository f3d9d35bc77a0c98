package compare

import (
	_ "embed" // for accepted.yaml
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed accepted.yaml
var acceptedFile []byte

// absent is the pattern of a value that a side does not have. No value has this text: strings are in quotes.
const absent = "absent"

// Rule accepts differences that are better than copying Clouddriver. In all patterns, * stands for
// any text.
type Rule struct {
	Form   string `json:"form"`           // pattern of the path's form
	Path   string `json:"path,omitempty"` // pattern of the path; "" for all
	Field  string `json:"field"`          // pattern of Difference.Field
	A      string `json:"clouddriver,omitempty"`
	B      string `json:"vedette,omitempty"` // patterns of the values as JSON; "" for all, absent for none
	Reason string `json:"reason"`
}

// Rules is a list of accepted differences.
type Rules []Rule

// AcceptedRules returns the differences between Clouddriver and Vedette that are intended.
func AcceptedRules() (Rules, error) { return ParseRules(acceptedFile) }

// ParseRules parses and checks a file like accepted.yaml.
func ParseRules(text []byte) (Rules, error) {
	var rules Rules
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		return nil, fmt.Errorf("parse accepted differences: %w", err)
	}
	for i, r := range rules {
		if r.Form == "" || r.Field == "" || r.Reason == "" {
			return nil, fmt.Errorf("accepted difference %d: form, field and reason are required", i+1)
		}
	}
	return rules, nil
}

// Find returns the first rule that accepts a difference, or nil.
func (rules Rules) Find(form, path string, d Difference) *Rule {
	for i := range rules {
		if rules[i].matches(form, path, d) {
			return &rules[i]
		}
	}
	return nil
}

func (r *Rule) matches(form, path string, d Difference) bool {
	return Matches(r.Form, form) && Matches(r.Field, d.Field) && (r.Path == "" || Matches(r.Path, path)) &&
		matchesValue(r.A, d.A) && matchesValue(r.B, d.B)
}

// matchesValue reports whether a value, which is empty if the side does not have it, matches a pattern of values.
func matchesValue(pattern, value string) bool {
	switch pattern {
	case "":
		return true
	case absent:
		return value == ""
	}
	return Matches(pattern, value)
}

// Matches reports whether a text matches a pattern in which * stands for any text.
func Matches(pattern, text string) bool {
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
	return regexp.MustCompile(`(?s)^` + expression + `$`).MatchString(text)
}
