package compare

import (
	"cmp"
	"slices"
)

// Report is the result of a comparison.
type Report struct {
	Total     int          `json:"total"`
	Equal     int          `json:"equal"`
	Accepted  int          `json:"accepted"`  // answers that differ only as the rules accept
	Different int          `json:"different"` // answers that differ otherwise
	Failed    int          `json:"failed"`    // requests that could not be compared
	Forms     []FormReport `json:"forms"`

	differing []string // paths, including those that failed
	results   []result
}

// FormReport is the result for the paths of one form.
type FormReport struct {
	Form      string  `json:"form"`
	Total     int     `json:"total"`
	Equal     int     `json:"equal"`
	Accepted  int     `json:"accepted"`
	Different int     `json:"different"`
	Failed    int     `json:"failed"`
	Groups    []Group `json:"groups,omitempty"`
}

// Group is the differences in one field.
type Group struct {
	Field   string `json:"field"`
	Reason  string `json:"reason,omitempty"` // why they are accepted; "" if they are not
	Count   int    `json:"count"`            // of differences
	Answers int    `json:"answers"`          // in which they occur

	// An example.
	Path        string `json:"path"`
	Clouddriver string `json:"clouddriver,omitempty"`
	Vedette     string `json:"vedette,omitempty"`
	Error       string `json:"error,omitempty"` // why the request could not be compared
}

// OK reports whether all answers are equal or accepted.
func (r *Report) OK() bool { return r.Different == 0 && r.Failed == 0 }

// result is the comparison of one request.
type result struct {
	path  string
	found []Difference
	err   error
}

// newReport groups results. It depends only on the results, not on their order.
func newReport(results []result, rules Rules) *Report {
	slices.SortFunc(results, func(a, b result) int { return cmp.Compare(a.path, b.path) })
	byForm := map[string]*formGroups{}
	for _, r := range results {
		form := Form(r.path)
		if byForm[form] == nil {
			byForm[form] = &formGroups{report: FormReport{Form: form}, groups: map[groupKey]*Group{}, rules: rules}
		}
		byForm[form].add(r)
	}
	report := &Report{results: results}
	for _, f := range byForm {
		report.add(f.finish())
		report.differing = append(report.differing, f.differing...)
	}
	slices.SortFunc(report.Forms, func(a, b FormReport) int { return cmp.Compare(a.Form, b.Form) })
	slices.Sort(report.differing)
	return report
}

func (r *Report) add(f FormReport) {
	r.Total = r.Total + f.Total
	r.Equal = r.Equal + f.Equal
	r.Accepted = r.Accepted + f.Accepted
	r.Different, r.Failed = r.Different+f.Different, r.Failed+f.Failed
	r.Forms = append(r.Forms, f)
}

type groupKey struct{ field, reason string }

// formGroups collects the results of one form.
type formGroups struct {
	report FormReport
	groups map[groupKey]*Group
	rules  Rules

	differing []string
}

func (f *formGroups) add(r result) {
	f.report.Total++
	if r.err != nil {
		f.report.Failed++
		f.differing = append(f.differing, r.path)
		f.group(groupKey{field: "error"}, r.path, Difference{}, r.err.Error()).Answers++
		return
	}
	isAccepted, counted := true, map[*Group]bool{}
	for _, d := range r.found {
		reason := ""
		if rule := f.rules.Find(f.report.Form, r.path, d); rule != nil {
			reason = rule.Reason
		}
		isAccepted = isAccepted && reason != ""
		g := f.group(groupKey{d.Field, reason}, r.path, d, "")
		if !counted[g] {
			counted[g] = true
			g.Answers++
		}
	}
	switch {
	case len(r.found) == 0:
		f.report.Equal++
	case isAccepted:
		f.report.Accepted++
	default:
		f.report.Different++
		f.differing = append(f.differing, r.path)
	}
}

// group counts a difference. The first one of a group is its example.
func (f *formGroups) group(key groupKey, path string, d Difference, failure string) *Group {
	g := f.groups[key]
	if g == nil {
		g = &Group{Field: key.field, Reason: key.reason, Path: path, Clouddriver: d.A, Vedette: d.B, Error: failure}
		f.groups[key] = g
	}
	g.Count++
	return g
}

func (f *formGroups) finish() FormReport {
	for _, g := range f.groups {
		f.report.Groups = append(f.report.Groups, *g)
	}
	slices.SortFunc(f.report.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Field, b.Field))
	})
	return f.report
}

// Differing returns the paths whose answers differ, or could not be compared.
func (r *Report) Differing() []string { return r.differing }
