package beside

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// errorTimes knows for how long readers got nothing but errors.
type errorTimes struct {
	mu      sync.Mutex
	steps   []string // in order
	readers []string // in order
	cells   map[[2]string]*cell
	streaks map[string]streak // by reader, while it gets errors
}

// cell is one reader in one step.
type cell struct {
	requests, errors int
	longest          time.Duration
}

type streak struct {
	step string
	from time.Time
}

// add adds the end of a request, in a step.
func (e *errorTimes) add(step, reader string, began, ended time.Time, isError bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cells == nil {
		e.cells, e.streaks = map[[2]string]*cell{}, map[string]streak{}
	}
	if !slices.Contains(e.steps, step) {
		e.steps = append(e.steps, step)
	}
	if !slices.Contains(e.readers, reader) {
		e.readers = append(e.readers, reader)
	}
	c := e.cell(step, reader)
	c.requests++
	if !isError {
		delete(e.streaks, reader)
		return
	}
	c.errors++
	s, isContinued := e.streaks[reader]
	if !isContinued {
		s = streak{step, began}
		e.streaks[reader] = s
	}
	first := e.cell(s.step, reader)
	first.longest = max(first.longest, ended.Sub(s.from))
}

func (e *errorTimes) cell(step, reader string) *cell {
	key := [2]string{step, reader}
	if e.cells[key] == nil {
		e.cells[key] = &cell{}
	}
	return e.cells[key]
}

// String returns a table with the longest times, in the step in which the first error came, and the numbers of requests.
func (e *errorTimes) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.readers)
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "reader")
	for i := range e.steps {
		fmt.Fprintf(w, "\t%d", i+1)
	}
	fmt.Fprintln(w, "\trequests\terrors")
	for _, reader := range e.readers {
		fmt.Fprint(w, reader)
		requests, errors := 0, 0
		for _, step := range e.steps {
			c := e.cell(step, reader)
			requests, errors = requests+c.requests, errors+c.errors
			switch {
			case c.longest > 0:
				fmt.Fprintf(w, "\t%.1fs", c.longest.Seconds())
			default:
				fmt.Fprint(w, "\t-")
			}
		}
		fmt.Fprintf(w, "\t%d\t%d\n", requests, errors)
	}
	_ = w.Flush() // the builder does not fail
	for i, step := range e.steps {
		fmt.Fprintf(&text, "%d: %s\n", i+1, step)
	}
	return text.String()
}
