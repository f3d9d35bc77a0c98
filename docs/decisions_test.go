package docs

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/golden"
)

// subjects are what records are about, in the order of the index. A new one is added here.
var subjects = []string{
	"change stream", "accounts and agents", "store", "operations", "Clouddriver's API", "REST API", "command line", "configuration",
	"security", "memory and fairness", "metrics, logs and health", "installation", "code and tests",
}

// record is the head of a record in docs/decisions.
type record struct {
	number  int
	file    string // name in the directory
	title   string
	subject string
	date    string // on which it was accepted; empty if it is superseded
	// supersededBy is the link to the record that replaces it, as [30](0030-x.md); empty if none does.
	supersededBy string
}

var (
	recordHead   = regexp.MustCompile(`^# (\d+)\. (.+)\n\nStatus: (.+)\n\nSubject: (.+)\n\n\S`)
	accepted     = regexp.MustCompile(`^accepted \((\d{4}-\d{2}-\d{2})\)$`)
	superseded   = regexp.MustCompile(`^superseded by (\[(\d+)\]\((\d{4})-[a-z0-9-]+\.md\))$`)
	notInNames   = regexp.MustCompile(`[^a-z0-9]+`)
	dropInTitles = strings.NewReplacer("'", "", "`", "")
)

// fileOf returns the name of the file of a record.
func fileOf(number int, title string) string {
	words := notInNames.ReplaceAllString(strings.ToLower(dropInTitles.Replace(title)), "-")
	return fmt.Sprintf("%04d-%s.md", number, strings.Trim(words, "-"))
}

// parseRecord reads the head of a record.
func parseRecord(file, text string) (record, error) {
	m := recordHead.FindStringSubmatch(text)
	if m == nil {
		return record{}, errors.New(`must begin with "# NUMBER. TITLE", "Status: …" and "Subject: …", an empty line after each, and then its text`)
	}
	number, err := strconv.Atoi(m[1])
	if err != nil {
		return record{}, fmt.Errorf("read the number: %w", err)
	}
	r := record{number: number, file: file, title: m[2], subject: m[4]}
	if want := fileOf(r.number, r.title); file != want {
		return record{}, fmt.Errorf("must be called %s, after its number and title", want)
	}
	if !slices.Contains(subjects, r.subject) {
		return record{}, fmt.Errorf("subject %q must be one of: %s", r.subject, strings.Join(subjects, "; "))
	}
	if s := superseded.FindStringSubmatch(m[3]); s != nil && fmt.Sprintf("%04s", s[2]) == s[3] {
		r.supersededBy = s[1]
		return r, nil
	}
	a := accepted.FindStringSubmatch(m[3])
	if a == nil {
		return record{}, fmt.Errorf("status %q must be \"accepted (YYYY-MM-DD)\" or \"superseded by [NUMBER](FILE)\"", m[3])
	}
	if _, err := time.Parse(time.DateOnly, a[1]); err != nil {
		return record{}, fmt.Errorf("read the date of the status: %w", err)
	}
	r.date = a[1]
	return r, nil
}

func TestRecordNeedsStatusDateAndSubject(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		want             string // part of the error; empty for none
	}{
		{"accepted", "0007-a-title.md", "# 7. A title\n\nStatus: accepted (2026-11-21)\n\nSubject: store\n\nText.\n", ""},
		{"superseded", "0007-a-title.md", "# 7. A title\n\nStatus: superseded by [12](0012-b.md)\n\nSubject: store\n\nText.\n", ""},
		{"signs in the title", "0007-all-of-kubectls-needs-yes.md",
			"# 7. `--all` of kubectl's needs `--yes`\n\nStatus: accepted (2026-11-21)\n\nSubject: store\n\nText.\n", ""},
		{"no number", "0007-a-title.md", "# A title\n\nStatus: accepted (2026-11-21)\n\nSubject: store\n\nText.\n", "must begin with"},
		{"no status", "0007-a-title.md", "# 7. A title\n\nSubject: store\n\nText.\n", "must begin with"},
		{"no subject", "0007-a-title.md", "# 7. A title\n\nStatus: accepted (2026-11-21)\n\nText.\n", "must begin with"},
		{"no text", "0007-a-title.md", "# 7. A title\n\nStatus: accepted (2026-11-21)\n\nSubject: store\n", "must begin with"},
		{"no date", "0007-a-title.md", "# 7. A title\n\nStatus: accepted\n\nSubject: store\n\nText.\n", `status "accepted" must be`},
		{"not a date", "0007-a-title.md", "# 7. A title\n\nStatus: accepted (2026-11-31)\n\nSubject: store\n\nText.\n", "read the date"},
		{"superseded by two", "0007-a-title.md", "# 7. A title\n\nStatus: superseded by [12](0013-b.md)\n\nSubject: store\n\nText.\n",
			"must be"},
		{"another subject", "0007-a-title.md", "# 7. A title\n\nStatus: accepted (2026-11-21)\n\nSubject: stores\n\nText.\n",
			`subject "stores" must be one of`},
		{"another name", "0007-b.md", "# 7. A title\n\nStatus: accepted (2026-11-21)\n\nSubject: store\n\nText.\n",
			"must be called 0007-a-title.md"},
		{"another number", "0008-a-title.md", "# 7. A title\n\nStatus: accepted (2026-11-21)\n\nSubject: store\n\nText.\n",
			"must be called 0007-a-title.md"},
	} {
		_, err := parseRecord(tt.file, tt.text)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// records returns all records, by number. It fails the test for those without the form.
func records(t *testing.T) []record {
	t.Helper()
	entries, err := os.ReadDir("decisions")
	if err != nil {
		t.Fatal(err)
	}
	var all []record
	for _, entry := range entries {
		if entry.Name() == "README.md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("decisions", entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := parseRecord(entry.Name(), string(text))
		if err != nil {
			t.Errorf("docs/decisions/%s %v", entry.Name(), err)
			continue
		}
		if len(all) > 0 && all[len(all)-1].number == r.number {
			t.Errorf("docs/decisions/%s has the number of %s; take the next free one", r.file, all[len(all)-1].file)
		}
		all = append(all, r)
	}
	return all
}

const indexIntro = `# Decisions

Why things are as they are: choices between alternatives whose consequences users or maintainers meet. What explains one package is
in its comments. Numbers are never given again: those that are missing belong to records that became part of others, or of comments.

A record begins with its number and title, its status and its subject. The name of its file is made of the first two. It is named in
the code or on the page of the documentation that it explains. ` + "`go test ./docs -run TestDecisionIndex -update`" + ` writes this page
from the records.
`

// TestDecisionIndex checks that the index lists all records.
func TestDecisionIndex(t *testing.T) {
	golden.Compare(t, "decisions/README.md", decisionIndex(records(t)))
}

func decisionIndex(all []record) string {
	var page strings.Builder
	page.WriteString(indexIntro)
	for _, subject := range subjects {
		// The first letter only: "REST API" has more capitals.
		fmt.Fprintf(&page, "\n## %s%s\n\n| | decision | date | status |\n|---|---|---|---|\n", strings.ToUpper(subject[:1]), subject[1:])
		for _, r := range all {
			if r.subject != subject {
				continue
			}
			status := "accepted"
			if r.supersededBy != "" {
				status = "superseded by " + r.supersededBy
			}
			fmt.Fprintf(&page, "| %d | [%s](%s) | %s | %s |\n", r.number, r.title, r.file, r.date, status)
		}
	}
	return page.String()
}

var (
	// lineBreak is the end of a line, with the signs that begin the next line of a comment.
	lineBreak = regexp.MustCompile(`[ \t]*\r?\n[ \t]*(?://|--|#+|\*|>)?[ \t]*`)
	// namedRecords are "decision 7", "decisions 7, [8](0008-x.md) and 9", "docs/decisions/0007", and "docs/decisions/0007, 0008 and 0009".
	namedRecords = regexp.MustCompile(`(?i)\bdecisions? \[?\d+\b(?:\]\([^)]*\))?(?:(?:,| and| or|, and) \[?\d+\b(?:\]\([^)]*\))?)*|` +
		`decisions/\d{4}\b(?:-[\w-]+\.md)?(?:(?:,| and|, and) 0\d{3}\b)*`)
	// linkedRecord is a link between records, which are in one directory.
	linkedRecord = regexp.MustCompile(`\]\((\d{4}-[\w-]+\.md)[)#]`)
	recordFile   = regexp.MustCompile(`\d{4}-[\w-]+\.md`)
	numbers      = regexp.MustCompile(`\d+`)
)

// named are the decisions that a text names.
type named struct {
	numbers []int
	files   []string // names of files in docs/decisions
}

func decisionsIn(text string) (n named) {
	text = lineBreak.ReplaceAllString(text, " ")
	for _, match := range namedRecords.FindAllString(text, -1) {
		n.files = append(n.files, recordFile.FindAllString(match, -1)...)
		for _, digits := range numbers.FindAllString(recordFile.ReplaceAllStringFunc(match, func(file string) string { return file[:4] }), -1) {
			number, err := strconv.Atoi(digits)
			if err == nil {
				n.numbers = append(n.numbers, number)
			}
		}
	}
	for _, match := range linkedRecord.FindAllStringSubmatch(text, -1) {
		n.files = append(n.files, match[1])
	}
	return n
}

func TestDecisionsInText(t *testing.T) {
	for _, tt := range []struct {
		text    string
		numbers []int
		files   []string
	}{
		{"as decision 7 says", []int{7}, nil},
		{"Decisions 7, 8 and 19.", []int{7, 8, 19}, nil},
		{"as decision\n// 7 says", []int{7}, nil},
		{"-- docs/decisions/0014. The", []int{14}, nil},
		{"// docs/decisions/0077, 0136 and\n// 0137 say why, and 2 more", []int{77, 136, 137}, nil},
		{"docs/decisions/0003 says why, and 0022 says more", []int{3}, nil},
		{"([decision 91](decisions/0091-labels.md), [decision 3](decisions/0003-x.md))", []int{91, 91, 3, 3},
			[]string{"0091-labels.md", "0003-x.md"}},
		{"see [118](0118-exact-json.md) and [a](0122-x.md#part)", nil, []string{"0118-exact-json.md", "0122-x.md"}},
		{"[who may read](decisions/0020-who-may-read.md)", []int{20}, []string{"0020-who-may-read.md"}},
		{"a decision of 7 people; indecision 7", nil, nil},
	} {
		if got := decisionsIn(tt.text); !slices.Equal(got.numbers, tt.numbers) || !slices.Equal(got.files, tt.files) {
			t.Errorf("%q: got %v, want %v and %v", tt.text, got, tt.numbers, tt.files)
		}
	}
}

// TestDecisionsExist checks that texts and code name no decision that does not exist.
func TestDecisionsExist(t *testing.T) {
	exists := map[string]bool{}
	isNumber := map[int]bool{}
	for _, r := range records(t) {
		exists[r.file], isNumber[r.number] = true, true
	}
	inRepository(t, func(path, text string) {
		n := decisionsIn(text)
		for _, number := range n.numbers {
			if !isNumber[number] {
				t.Errorf("%s names decision %d, which does not exist", path, number)
			}
		}
		for _, file := range n.files {
			if !exists[file] {
				t.Errorf("%s links to docs/decisions/%s, which does not exist", path, file)
			}
		}
	})
}

// TestDecisionsAreNamed checks that each record is named in a comment of the code or on a page of the documentation, where those look
// who wonder why something is so. The index, the change log and other records do not count.
func TestDecisionsAreNamed(t *testing.T) {
	isNamed := map[int]bool{}
	inRepository(t, func(path, text string) {
		switch {
		case filepath.Ext(path) == ".go":
			text = commentsOf(t, path, text)
		case filepath.Ext(path) != ".md" || filepath.Dir(path) != "docs":
			return
		}
		for _, number := range decisionsIn(text).numbers {
			isNamed[number] = true
		}
	})
	for _, r := range records(t) {
		if r.supersededBy == "" && !isNamed[r.number] {
			t.Errorf("docs/decisions/%s is named in no comment and on no page: name it where it explains something, as docs/decisions/%04d",
				r.file, r.number)
		}
	}
}

// inRepository calls do with the files that people write, by their paths from the root. This file is not among them, because it has
// examples.
func inRepository(t *testing.T, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); strings.HasPrefix(name, ".") && name != ".." && name != ".github" {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel("..", path)
		if err != nil || name == filepath.Join("docs", "decisions_test.go") || !isText(entry) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(name, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isText(entry fs.DirEntry) bool {
	switch filepath.Ext(entry.Name()) {
	case ".go", ".md", ".sql", ".proto", ".yml", ".yaml", ".sh", ".service":
		return entry.Type().IsRegular()
	}
	return entry.Name() == "Makefile"
}

// commentsOf returns the comments of a Go file.
func commentsOf(t *testing.T, path, text string) string {
	t.Helper()
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile(path, -1, len(text)), []byte(text), func(at token.Position, message string) { t.Fatalf("%s: %s", at, message) },
		scanner.ScanComments)
	var comments strings.Builder
	for {
		_, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return comments.String()
		case token.COMMENT:
			comments.WriteString(literal + "\n")
		}
	}
}
