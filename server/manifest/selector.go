package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
)

// Selectors select objects by labels. All must match; an empty list matches everything. The
// JSON is Clouddriver's: {"selectors":[{"kind":"EQUALS","key":"app","values":["a"]}]}.
type Selectors []Selector

// Selector is one condition on labels.
type Selector struct {
	Kind   string   `json:"kind"` // one of selectorKinds
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// selectorKinds are the kinds of selectors: their form in kubectl, and the minimum number of
// values. K stands for the key, V for the first value, L for all values.
var selectorKinds = map[string]struct {
	format string
	values int
}{
	"ANY":          {"", 0},
	"EQUALS":       {"K = V", 1},
	"NOT_EQUALS":   {"K != V", 1},
	"CONTAINS":     {"K in (L)", 1},
	"NOT_CONTAINS": {"K notin (L)", 1},
	"EXISTS":       {"K", 0},
	"NOT_EXISTS":   {"!K", 0},
}

// UnmarshalJSON parses and checks selectors as Orca sends them.
func (s *Selectors) UnmarshalJSON(raw []byte) error {
	var list struct {
		Selectors []Selector `json:"selectors"`
	}
	if err := decode(raw, &list); err != nil {
		return decodeError("the label selectors are", err)
	}
	*s = list.Selectors
	return s.Check()
}

// Check rejects invalid selectors with vedette.Invalid.
func (s Selectors) Check() error {
	for _, selector := range s {
		form, known := selectorKinds[selector.Kind]
		switch {
		case !known:
			return vedette.Errorf(vedette.Invalid,
				"a label selector has the kind %q, which is not one of ANY, EQUALS, NOT_EQUALS, CONTAINS, NOT_CONTAINS, EXISTS and NOT_EXISTS",
				selector.Kind)
		case selector.Key == "" && selector.Kind != "ANY":
			return vedette.Errorf(vedette.Invalid, "Only an 'any' selector can have no key specified")
		case len(selector.Values) < form.values:
			return vedette.Errorf(vedette.Invalid, "At least one value must be supplied to a '%s' selector",
				strings.ToLower(strings.ReplaceAll(selector.Kind, "_", "")))
		case selector.isAmbiguous(form.format):
			return vedette.Errorf(vedette.Invalid, "the label selector %q has a comma or bracket, which labels cannot have", s)
		}
	}
	if _, err := labels.Parse(s.String()); err != nil {
		return vedette.Errorf(vedette.Invalid, "the label selector %q is invalid: %w", s, err)
	}
	return nil
}

// isAmbiguous reports whether the text of a selector would be parsed as another selector. A
// comma in a list of values is allowed, because it only adds values.
func (s Selector) isAmbiguous(form string) bool {
	forbidden := ",()"
	if strings.Contains(form, "L") {
		forbidden = "()"
	}
	return strings.ContainsAny(s.Key, ",()") || strings.ContainsAny(strings.Join(s.Values, ""), forbidden)
}

// String formats checked selectors for kubectl's -l, for example "a = b,!c".
func (s Selectors) String() string {
	var all []string
	for _, selector := range s {
		if written := selector.String(); written != "" {
			all = append(all, written)
		}
	}
	return strings.Join(all, ",")
}

// String formats one selector. It is empty if a value is missing.
func (s Selector) String() string {
	form := selectorKinds[s.Kind]
	if len(s.Values) < form.values {
		return ""
	}
	first := ""
	if len(s.Values) > 0 {
		first = s.Values[0]
	}
	return strings.NewReplacer("K", s.Key, "V", first, "L", strings.Join(s.Values, ", ")).Replace(form.format)
}

// Matches reports whether labels match, as kubectl filters manifests. The error is
// vedette.Invalid.
func (s Selectors) Matches(set map[string]string) (bool, error) {
	parsed, err := labels.Parse(s.String())
	if err != nil {
		return false, vedette.Errorf(vedette.Invalid, "the label selector %q is invalid: %w", s, err)
	}
	return parsed.Matches(labels.Set(set)), nil
}
