package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table is what came out, in the order in which it was measured.
type table struct {
	part   string
	rows   []row
	before cpuLoad
	loads  map[string]string // by part: the CPU time of other programs
}

// row is one line: a measure, its target, the result, the ratio of the result to the target or
// to the alternative, and a remark.
type row struct {
	part, measure, target, result, ratio, remark string
	values                                       map[string]float64 // for programs
}

func (t *table) begin(part string) { t.part, t.before = part, currentLoad() }

func (t *table) end() {
	if t.loads == nil {
		t.loads = map[string]string{}
	}
	t.loads[t.part] = currentLoad().otherProgramsSince(t.before, runtime.NumCPU())
	logf("%s: %s", t.part, t.loads[t.part])
}

func (t *table) add(r row) {
	r.part = t.part
	t.rows = append(t.rows, r)
	logf("%s: %s %s %s", r.measure, r.result, r.ratio, r.remark)
}

// ratio returns a / b as text, or "" if b is 0.
func ratio(a, b float64) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f x", a/b)
}

// percentOfTarget returns a result in percent of its target, or "" if there is no target.
func percentOfTarget(result, target float64) string {
	if target == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %% of aim", 100*result/target)
}

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "MEASURE\tAIM\tRESULT\tRATIO\tREMARK")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.measure, r.target, r.result, r.ratio, r.remark)
	}
	_ = tw.Flush() // standard output
}

const (
	partMarker     = "<!-- part "
	introEndMarker = "<!-- measures -->"
	remarksMarker  = "<!-- remarks, written by hand -->"
)

// save writes the files that the options name.
func (t *table) save(o options) error {
	if o.json != "" {
		if err := t.writeJSON(filepath.Clean(o.json)); err != nil {
			return err
		}
	}
	if o.write == "" {
		return nil
	}
	return t.write(filepath.Clean(o.write))
}

// jsonRow is a row in the JSON file.
type jsonRow struct {
	Part    string             `json:"part"`
	Measure string             `json:"measure"`
	Target  string             `json:"target,omitempty"`
	Result  string             `json:"result"`
	Ratio   string             `json:"ratio,omitempty"`
	Remark  string             `json:"remark,omitempty"`
	Values  map[string]float64 `json:"values,omitempty"`
}

// writeJSON writes the results of this run, with the machine.
func (t *table) writeJSON(file string) error {
	report := struct {
		Machine string            `json:"machine"`
		Load    map[string]string `json:"load"` // what other programs took, by part
		Rows    []jsonRow         `json:"rows"`
	}{Machine: describeMachine(), Load: t.loads}
	for _, r := range t.rows {
		report.Rows = append(report.Rows, jsonRow{r.part, r.measure, r.target, r.result, r.ratio, r.remark, r.values})
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// write writes the table as Markdown. Parts that were not measured this time stay
// as they are, with their dates, and so do remarks. A part that was measured
// again shows the results of the last time beside the new ones.
func (t *table) write(file string) error {
	parts, after := map[string]string{}, ""
	if old, err := os.ReadFile(file); err == nil {
		measured, remarksText, found := strings.Cut(string(old), remarksMarker)
		parts = previousParts(measured)
		if found {
			after = "\n" + remarksMarker + remarksText
		}
	}
	for _, m := range benchmarks {
		if text := t.markdown(m.name, parsePart(parts[m.name])); text != "" {
			parts[m.name] = text
		}
	}
	var b strings.Builder
	b.WriteString(introduction + introEndMarker + "\n")
	for _, m := range benchmarks {
		if text := parts[m.name]; text != "" {
			b.WriteString("\n" + partMarker + m.name + " -->\n" + text)
		}
	}
	return os.WriteFile(file, []byte(b.String()+after), 0o644)
}

const introduction = `# Performance

` + "`make bench`" + ` measures on the machine that it runs on, and writes its results here. Each part is one run, in which everything is
measured side by side, as the processes that users run. *Before* is the previous run of the part. Compare ratios rather than
figures, because ratios depend less on the machine. The aims are for two cores that are otherwise idle; each part states what
other programs took.

`

// measurement is a part as it was written before.
type measurement struct {
	machine string            // "2026-11-21, 2 cores of AMD EPYC, ..."
	results map[string]string // by measure
}

// parsePart reads what markdown has written.
func parsePart(text string) measurement {
	m := measurement{results: map[string]string{}}
	column := -1
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			if m.machine == "" && line != "" && !strings.HasPrefix(line, "#") {
				m.machine = line
			}
		case column < 0:
			column = slices.Index(cells, "result")
		case len(cells) > column:
			m.results[cells[0]] = cells[column]
		}
	}
	return m
}

func previousParts(text string) map[string]string {
	parts := map[string]string{}
	for i, piece := range strings.Split(text, "\n"+partMarker) {
		if name, rest, ok := strings.Cut(piece, " -->\n"); ok && i > 0 {
			parts[name] = strings.TrimRight(rest, "\n") + "\n"
		}
	}
	return parts
}

func (t *table) markdown(part string, before measurement) string {
	var b strings.Builder
	for _, r := range t.rows {
		if r.part != part {
			continue
		}
		if b.Len() == 0 {
			fmt.Fprintf(&b, "## %s\n\n%s\n", title(part), strings.TrimSpace(describeMachine()+" "+t.loads[part]))
			if before.machine != "" {
				fmt.Fprintf(&b, "\nBefore: %s\n", before.machine)
			}
			if note := partNotes[part]; note != "" {
				fmt.Fprintf(&b, "\n%s\n", note)
			}
			b.WriteString("\n| measure | aim | before | result | ratio | remark |\n|---|---|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.measure, r.target, before.results[r.measure], r.result, r.ratio, r.remark)
	}
	return b.String()
}

// partNotes say how to read parts.
var partNotes = map[string]string{
	"api": "Figures are in the order SQLite / PostgreSQL / MariaDB. Each request follows a change of what it asks for, so that no cached answer\n" +
		"is valid; *unchanged* requests do not, and those *with ETag* are answered with 304. bigshop has 1,000 workloads and 5,000 Pods, smallshop\n" +
		"has 20 Pods. The fleet of 50 accounts has 100,000 objects, the one of 5,000 accounts 20,000 applications and 1,000,000 objects. The ratio\n" +
		"is that of the slowest median. Times end with the last byte at the client, which shares the two cores.",
}

func title(part string) string {
	if part == "api" {
		return "Clouddriver's API"
	}
	return strings.ToUpper(part[:1]) + strings.ReplaceAll(part[1:], "-", " ")
}

// describeMachine describes what was measured on.
func describeMachine() string {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores of %s, %s, %s/%s.", time.Now().Format(time.DateOnly), runtime.NumCPU(), model,
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
