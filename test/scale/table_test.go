package scale

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table is what was measured.
type table struct{ rows [][3]string }

func (t *table) add(what, result, remark string) {
	t.rows = append(t.rows, [3]string{what, result, remark})
}

// String returns the table as text in columns.
func (t *table) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d servers, %d agents, %d accounts of %d objects\n", *serverCount, *agentCount, *accountCount, *objectCount)
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(row[:], "\t"))
	}
	_ = w.Flush() // a strings.Builder never fails
	return text.String()
}

// quantiles summarizes durations.
type quantiles struct {
	p50, p99, longest time.Duration
	n                 int
}

func newQuantiles(durations []time.Duration) quantiles {
	if len(durations) == 0 {
		return quantiles{}
	}
	slices.Sort(durations)
	return quantiles{durations[len(durations)/2], durations[len(durations)*99/100], durations[len(durations)-1], len(durations)}
}

func (q quantiles) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, max %s", seconds(q.p50), seconds(q.p99), seconds(q.longest))
}
