package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// observation is what one step showed in one state.
type observation struct {
	requests []request
	errors   []string // of the console, without known ones
	text     string
	err      error // why the step could not be done
}

// result is what one step showed in all states that were run.
type result struct {
	name     string
	isAction bool // and what it shows is not compared
	states   []string
	seen     map[string]observation
}

// varying are texts that differ from run to run, and what stands for them in comparisons. The order counts.
var varying = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\borders\d\b`), "orders"}, // each state has an application of its own for actions
	{regexp.MustCompile(`ORDERS\d\b`), "ORDERS"},
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b[bcdf-hj-np-tv-z24-9]{8,10}(-[bcdf-hj-np-tv-z24-9]{5})?\b`), "HASH"}, // of a pod template, and of a pod
	{regexp.MustCompile(`-[bcdf-hj-np-tv-z24-9]{5}\b`), "-POD"},
	{regexp.MustCompile(`(half a minute|((less than|about|over|almost) )?(an?|\d+|a few) (second|minute|hour|day)s?)( ago)?`), "AGE"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b(\d+:)?\d\d:\d\d\b`), "DURATION"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "ADDRESS"},
}

// lines returns the lines of a text without what differs from run to run, in order.
func lines(text string) []string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.text)
	}
	var found []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			found = append(found, line)
		}
	}
	return found
}

// accepted is a difference, or an error of the console, that is not ours. The patterns match whole names and
// parts of texts.
type accepted struct {
	page   string
	text   string
	reason string
	found  int
}

// accept reports whether a text of a page is accepted.
func accept(list []*accepted, page, text string) bool {
	for _, a := range list {
		if regexp.MustCompile("^("+a.page+")$").MatchString(page) && regexp.MustCompile(a.text).MatchString(text) {
			a.found++
			return true
		}
	}
	return false
}

// missing returns the lines of a text that another one lacks. Lines are counted; their order is not compared, because Deck does not sort
// everything that it shows.
func missing(from, in string) []string {
	counts := map[string]int{}
	for _, line := range lines(in) {
		counts[line]++
	}
	var found []string
	for _, line := range lines(from) {
		if counts[line]--; counts[line] < 0 {
			found = append(found, line)
		}
	}
	return found
}

// differences compares each state with the first.
func (r result) differences() []string {
	if r.isAction {
		return nil
	}
	var found []string
	for _, state := range r.states[1:] {
		first, other := r.states[0], state
		for range 2 {
			for _, line := range missing(r.seen[first].text, r.seen[other].text) {
				if !accept(acceptedDifferences, r.name, line) {
					found = append(found, fmt.Sprintf("%q is shown in state %s, and not in state %s", line, first, other))
				}
			}
			first, other = other, first
		}
	}
	return found
}

// failures returns what failed in each state.
func (r result) failures() []string {
	var found []string
	for _, state := range r.states {
		o := r.seen[state]
		if o.err != nil {
			found = append(found, fmt.Sprintf("state %s: %v", state, o.err))
		}
		for _, request := range o.requests {
			if request.isFailed() {
				found = append(found, fmt.Sprintf("state %s: %v", state, request))
			}
		}
		for _, text := range o.errors {
			found = append(found, fmt.Sprintf("state %s: console: %.300s", state, text))
		}
	}
	return found
}

// report prints the results as a table and their details, and returns how many steps are not as they should be.
func report(out io.Writer, results []result) int {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "page\trequests\tfailed\ttexts equal")
	var details []string
	wrong := 0
	for _, r := range results {
		failures, differences := r.failures(), r.differences()
		var requests []string
		for _, state := range r.states {
			requests = append(requests, fmt.Sprint(len(r.seen[state].requests)))
		}
		equal := "yes"
		switch {
		case r.isAction:
			equal = "-"
		case len(differences) > 0:
			equal = "NO"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", r.name, strings.Join(requests, "/"), len(failures), equal)
		if len(failures)+len(differences) > 0 {
			wrong++
			details = append(details, r.name+":")
			for _, line := range append(failures, differences...) {
				details = append(details, "  "+line)
			}
		}
	}
	table.Flush()
	if len(details) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(details, "\n"))
	}
	for _, a := range append(slices.Clone(acceptedDifferences), knownErrors...) {
		fmt.Fprintf(out, "accepted %d times in %s: %s\n", a.found, a.page, a.reason)
	}
	return wrong
}
