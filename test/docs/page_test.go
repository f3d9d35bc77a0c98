package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette/internal/golden"
)

// page is a page with outputs of programs. Its tests run at the same time.
type page struct {
	path string
	mu   sync.Mutex // held while the file is read or written
}

// output is a block of a page that shows what programs print. Other blocks (yaml, sh) are examples.
var output = regexp.MustCompile("(?ms)^```(?:console|text)\n(.*?)^```$")

// headings returns the headings of all sections with outputs.
func (p *page) headings(t *testing.T) []string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var headings []string
	for _, section := range strings.Split(p.read(t), "\n## ")[1:] {
		if heading, _, _ := strings.Cut(section, "\n"); output.MatchString(section) {
			headings = append(headings, heading)
		}
	}
	return headings
}

func (p *page) read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the section with a heading. The test fails if it does not show all of its outputs.
func (p *page) section(t *testing.T, heading string) *section {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	start, end := p.bounds(t, heading)
	s := &section{t: t, page: p, heading: heading}
	for _, m := range output.FindAllStringSubmatch(p.read(t)[start:end], -1) {
		s.blocks = append(s.blocks, m[1])
	}
	t.Cleanup(func() {
		if !t.Failed() && s.next != len(s.blocks) {
			t.Errorf("%s, %q: the page has %d outputs, of which the test shows %d", p.path, heading, len(s.blocks), s.next)
		}
	})
	return s
}

// bounds returns where the text of a section starts and ends.
func (p *page) bounds(t *testing.T, heading string) (start, end int) {
	t.Helper()
	text := p.read(t)
	before, after, found := strings.Cut(text, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", p.path, heading)
	}
	start = len(text) - len(after)
	after, _, _ = strings.Cut(after, "\n## ")
	return len(before), start + len(after)
}

// replace replaces the output with a number in a section.
func (p *page) replace(t *testing.T, heading string, number int, content string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.read(t)
	start, end := p.bounds(t, heading)
	at := output.FindAllStringSubmatchIndex(text[start:end], -1)[number]
	text = text[:start+at[2]] + content + text[start+at[3]:]
	if err := os.WriteFile(p.path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// section is a section of a page whose outputs a test shows one after the other.
type section struct {
	t       *testing.T
	page    *page
	heading string
	blocks  []string // outputs
	next    int      // the number of the next output
}

// show compares the next output of the section with what the parts print, one after the other. A part gets what the
// page shows for it, and returns what was printed.
func (s *section) show(parts ...func(shown string) string) {
	s.t.Helper()
	if s.next == len(s.blocks) {
		s.t.Fatalf("%s, %q: there is no output %d", s.page.path, s.heading, s.next+1)
	}
	number, shown := s.next, split(s.blocks[s.next])
	s.next++
	var got strings.Builder
	for i, part := range parts {
		want := ""
		if i < len(shown) {
			want = shown[i]
		}
		text := part(want)
		if normalize(text) == normalize(want) {
			text = want // so that only what differs is written
		}
		got.WriteString(text)
	}
	switch {
	case got.String() == s.blocks[number]:
	case golden.Updates():
		s.page.replace(s.t, s.heading, number, got.String())
	default:
		s.t.Errorf("%s, %q, output %d differs (update it with -update): got\n%s\nwant\n%s", s.page.path, s.heading, number+1,
			got.String(), s.blocks[number])
	}
}

// split splits a block into its commands with their outputs. A block without commands is one part.
func split(block string) []string {
	if !strings.HasPrefix(block, "$ ") {
		return []string{block}
	}
	parts := strings.Split(block, "\n$ ")
	for i := range parts {
		if i > 0 {
			parts[i] = "$ " + parts[i]
		}
		if i < len(parts)-1 {
			parts[i] += "\n"
		}
	}
	return parts
}

// volatile is what differs each time: times, dates, ages, ids, ports of connections, versions. Columns are as wide as their
// longest value, so the number of spaces differs too.
var volatile = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ULID"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UUID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w+ \d{4} [\d:]+ GMT`), "TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DATE"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|m|s|ms|µs|ns))+\b`), "DURATION"},
	{regexp.MustCompile(`\bv\d+\.\d+\.\d+(-[\w.]+)?\b`), "VERSION"},
	{regexp.MustCompile(`\d\.\d+e\+\d\d`), "NUMBER"},
	{regexp.MustCompile(`127\.0\.0\.1:\d{5}\b`), "ADDRESS"},
	{regexp.MustCompile(`"rejected"} [1-9]\d*`), `"rejected"} N`},
	{regexp.MustCompile(`schema version \d+ and this server knows versions up to \d+`), "schema version N and this server knows versions up to M"},
	{regexp.MustCompile(`\bsuppressed=\d+`), "suppressed=N"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(` \n`), "\n"},
}

// normalize replaces what differs each time.
func normalize(text string) string {
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.text)
	}
	return text
}

// TestOnlyVolatileTextIsNormalized checks that what is not volatile stays.
func TestOnlyVolatileTextIsNormalized(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"prod   Ready   37ms   168", "prod   Ready   1.5s   168", true},
		{"prod   Ready   37ms   168", "prod   Ready   37ms   169", false},
		{"prod   Ready   37ms", "prod   Stale   37ms", false},
		{"prod   Ready   1m30s\n", "prod  Ready  2h\n", true},
		{"deployment.apps/web-2 scaled", "deployment.apps/web-3 scaled", false},
		{"read tcp 127.0.0.1:41000->10.0.0.1:9091: reset", "read tcp 127.0.0.1:52000->10.0.0.1:9091: reset", true},
		{"10.0.0.1:9091: reset", "10.0.0.1:9092: reset", false},
		{"01M81HP8VB0092H1B9YA32CJHR done", "01M81HP8VA7K9FT9HBHJHGBD68 done", true},
		{"time=2026-11-27T10:37:31.283Z level=INFO", "time=2026-11-28T10:37:31Z level=WARN", false},
		{"valid from 2026-11-26 to 2026-11-27", "valid from 2026-11-27 to 2026-11-28", true},
		{"has expired: 2026-01-01T00:00:00Z", "has expired: 2027-01-01T00:00:00+01:00", true},
	} {
		if got := normalize(row.a) == normalize(row.b); got != row.same {
			t.Errorf("%q and %q: got same=%t, want %t", row.a, row.b, got, row.same)
		}
	}
}

func TestBlocksAreSplitAtCommands(t *testing.T) {
	block := "$ vedette accounts\nNo accounts.\n$ vedette agents\nNAME\n"
	if got := split(block); !slices.Equal(got, []string{"$ vedette accounts\nNo accounts.\n", "$ vedette agents\nNAME\n"}) {
		t.Errorf("got %q", got)
	}
	if got := split("a line\n$ not a command\n"); len(got) != 1 {
		t.Errorf("got %q, want one part", got)
	}
}
