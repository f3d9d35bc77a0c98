package artifacts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vedette-io/vedette/internal/yamlcount"
)

// chart is one version of a chart in an index.
type chart struct {
	Version string   `json:"version" yaml:"version"`
	URLs    []string `json:"urls" yaml:"urls"`
}

// indexEntry is a chart's name and the text of its versions, which is parsed only if it is needed. It
// is valid during the visit only.
type indexEntry struct {
	name  string
	text  []byte
	parse func() ([]chart, error)
}

// anchor is the beginning of a value that others may be aliases of.
var anchor = regexp.MustCompile(`[-:?,[{]\s*&[^\s&]`)

// aliasBytes is what the aliases of a chart become at most: the parser of YAML follows some four million.
const aliasBytes = 160 << 20

// memory returns what parsing the versions takes at most.
func (e indexEntry) memory() int64 {
	size := int64(4*len(e.text) + yamlcount.NodeBytes*yamlcount.Values(e.text))
	if anchor.Match(e.text) {
		size += aliasBytes
	}
	return size
}

func (e indexEntry) charts() ([]chart, error) {
	charts, err := e.parse()
	if err != nil {
		return nil, fmt.Errorf("chart %.100q: %w", e.name, err)
	}
	return charts, nil
}

// errStopScan ends a scan early.
var errStopScan = errors.New("stop")

// maxEntryBytes bounds the text of one chart with all of its versions.
const maxEntryBytes = 8 << 20

// maxEntryValues bounds what parsing one chart takes: short values take a hundred times more memory
// than bytes. A chart of 8 MiB has 200,000 lines.
const maxEntryValues = 400_000

var errEntryTooLarge = fmt.Errorf("a chart has more than %d MiB of versions", maxEntryBytes>>20)

// checkValues returns an error for a text that would take too much memory.
func checkValues(text []byte) error {
	if yamlcount.Values(text) > maxEntryValues {
		return fmt.Errorf("a chart has more than %d values", maxEntryValues)
	}
	return nil
}

// scanIndex visits the charts of an index.yaml as they are read. Indexes have tens of megabytes, and
// a parser of YAML takes ten times that; here only the chart that is asked for is parsed. The text
// is split at the lines that begin a chart, which every index of Helm has with the same
// indentation. An index can also be JSON, which Helm writes, too. The memory of a chart is paid for as it arrives.
func scanIndex(r io.Reader, pay func(n int) error, visit func(indexEntry) error) error {
	paid := &entryReader{from: r, pay: pay}
	reader := bufio.NewReaderSize(paid, 64<<10)
	if first, err := reader.Peek(1); err == nil && first[0] == '{' {
		return scanJSONIndex(reader, paid, visit)
	}
	lines := bufio.NewScanner(reader)
	lines.Buffer(make([]byte, 0, 64<<10), maxEntryBytes)
	if found, err := skipToEntries(lines); !found || err != nil {
		return err
	}
	return (&indexSplitter{visit: visit, reader: paid}).split(lines)
}

// entryReader pays for what was read since the last chart has ended.
type entryReader struct {
	from    io.Reader
	pay     func(n int) error
	read    int // since the last chart
	paidFor int
}

// entryCopies is how often the bytes of a chart are in memory: in its line, and in all of its lines, both in
// buffers that grow by doubling.
const entryCopies = 4

func (r *entryReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.read += n; r.read > r.paidFor {
		if err := r.pay(entryCopies * (r.read - r.paidFor)); err != nil {
			return 0, err
		}
		r.paidFor = r.read
	}
	return n, err
}

// next begins to count another chart.
func (r *entryReader) next() { r.read = 0 }

// skipToEntries reads up to the key "entries".
func skipToEntries(lines *bufio.Scanner) (bool, error) {
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "entries:")
		if !ok {
			continue
		}
		switch rest, _, _ = strings.Cut(strings.TrimSpace(rest), " #"); rest {
		case "":
			return true, nil
		case "{}", "null", "~":
			return false, nil
		}
		return false, errors.New("its entries are not written as an indented list of charts")
	}
	if err := lines.Err(); err != nil {
		return false, indexLineError(err)
	}
	return false, errors.New("it is not an index: it has no entries")
}

func indexLineError(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("a line is longer than %d MiB", maxEntryBytes>>20)
	}
	return err
}

// indexSplitter collects the lines of one chart.
type indexSplitter struct {
	visit  func(indexEntry) error
	reader *entryReader
	indent int // of the charts' names; 0 before the first
	block  bytes.Buffer
}

func (s *indexSplitter) split(lines *bufio.Scanner) error {
	for lines.Scan() {
		line := bytes.TrimRight(lines.Bytes(), " \r")
		text := bytes.TrimLeft(line, " ")
		indent := len(line) - len(text)
		switch {
		case len(text) == 0 || text[0] == '#' && indent <= s.indent:
			continue
		case indent == 0 && text[0] != '-':
			return s.flush() // the next key of the index
		case s.indent == 0:
			s.indent = indent
		}
		if indent == s.indent && text[0] != '-' {
			if err := s.flush(); err != nil {
				return err
			}
		}
		if s.block.Len()+len(line) > maxEntryBytes {
			return errEntryTooLarge
		}
		s.block.Write(line)
		s.block.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		return indexLineError(err)
	}
	return s.flush()
}

// flush visits the chart whose lines were collected.
func (s *indexSplitter) flush() error {
	if s.block.Len() == 0 {
		return nil
	}
	text := s.block.Bytes()
	defer s.block.Reset()
	defer s.reader.next()
	name, err := chartName(text)
	if err != nil {
		return err
	}
	return s.visit(indexEntry{name, text, func() ([]chart, error) {
		if err := checkValues(text); err != nil {
			return nil, err
		}
		var entry map[string][]chart
		if err := yaml.Unmarshal(text, &entry); err != nil {
			return nil, fmt.Errorf("parse its versions: %w", err)
		}
		return entry[name], nil
	}})
}

// Limits of names that must be parsed.
const (
	maxNameBytes  = 1 << 10
	maxNameColons = 16
)

// chartName returns the key of a chart's text, without parsing the versions.
func chartName(text []byte) (string, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimSpace(line)
	// Nearly every name needs no parser.
	if name, ok := bytes.CutSuffix(line, []byte(":")); ok && !bytes.ContainsAny(name, "\"'{}[]#&*!|>%@`\\ :") {
		return string(name), nil
	}
	line = line[:min(len(line), maxNameBytes)]
	end := 0
	for range maxNameColons { // the key ends at a colon that is not part of it
		colon := bytes.IndexByte(line[end:], ':')
		if colon < 0 {
			break
		}
		end += colon + 1
		if end < len(line) && line[end] != ' ' && line[end] != '\t' {
			continue
		}
		var entry map[string]any
		if err := yaml.Unmarshal(line[:end], &entry); err != nil || len(entry) != 1 {
			continue
		}
		for name, value := range entry {
			if value == nil {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("it is not valid at %.100q", line)
}
