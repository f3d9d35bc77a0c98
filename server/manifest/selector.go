package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
)

// Selectors pick objects by their labels; all of them must fit. None picks all.
// Its JSON is Clouddriver's: {"selectors":[{"kind":"EQUALS","key":"app","values":["a"]}]}.
type Selectors []Selector

// Selector is one condition on labels.
type Selector struct {
	Kind   string   `json:"kind"` // one of selectorKinds
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// selectorKinds are the kinds of a Selector, how kubectl takes them, and how many
// values each needs at least. K stands for the key, V for the first value, L for
// all of them.
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

// UnmarshalJSON reads and checks what Orca sends.
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

// Check refuses, as vedette.Invalid, selectors that mean nothing.
func (s Selectors) Check() error {
	for _, selector := range s {
		form, known := selectorKinds[selector.Kind]
		switch {
		case !known:
			return vedette.Errorf(vedette.Invalid, "a label selector has the kind %q, which is none of ANY, EQUALS, NOT_EQUALS, CONTAINS, NOT_CONTAINS, EXISTS and NOT_EXISTS", selector.Kind)
		case selector.Key == "" && selector.Kind != "ANY":
			return vedette.Errorf(vedette.Invalid, "Only an 'any' selector can have no key specified")
		case len(selector.Values) < form.values:
			return vedette.Errorf(vedette.Invalid, "At least one value must be supplied to a '%s' selector", strings.ToLower(strings.ReplaceAll(selector.Kind, "_", "")))
		case selector.isAmbiguous(form.format):
			return vedette.Errorf(vedette.Invalid, "the label selector %q holds a comma or a bracket that no label has", s)
		}
	}
	if _, err := labels.Parse(s.String()); err != nil {
		return vedette.Errorf(vedette.Invalid, "the label selector %q is none that Kubernetes takes: %w", s, err)
	}
	return nil
}

// isAmbiguous reports whether a selector would mean another one when it is written. In
// a list of values a comma only makes more of them.
func (s Selector) isAmbiguous(form string) bool {
	forbidden := ",()"
	if strings.Contains(form, "L") {
		forbidden = "()"
	}
	return strings.ContainsAny(s.Key, ",()") || strings.ContainsAny(strings.Join(s.Values, ""), forbidden)
}

// String writes selectors that pass Check as kubectl takes them with -l: "a = b,!c".
func (s Selectors) String() string {
	var all []string
	for _, selector := range s {
		if written := selector.String(); written != "" {
			all = append(all, written)
		}
	}
	return strings.Join(all, ",")
}

// String writes one selector; nothing where it lacks a value.
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

// Matches reports whether labels fit, as kubectl filters manifests that it is
// given. The error is vedette.Invalid.
func (s Selectors) Matches(set map[string]string) (bool, error) {
	parsed, err := labels.Parse(s.String())
	if err != nil {
		return false, vedette.Errorf(vedette.Invalid, "the label selector %q is none that Kubernetes takes: %w", s, err)
	}
	return parsed.Matches(labels.Set(set)), nil
}
