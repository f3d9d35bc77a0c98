package metricset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Markdown returns a table of the metrics, sorted by name, for the documentation.
func (s *Set) Markdown() string {
	var out strings.Builder
	out.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	sorted := slices.SortedFunc(slices.Values(s.definitions), func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	for _, d := range sorted {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, labels, strings.ReplaceAll(d.Help, "|", `\|`))
	}
	return out.String()
}
