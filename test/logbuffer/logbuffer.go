// Package logbuffer keeps the logs of programs under test.
package logbuffer

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Buffer is a log that tests read while programs write it. The zero value is empty. It is safe for
// concurrent use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the log.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Lines returns the lines that contain all parts.
func (b *Buffer) Lines(parts ...string) (lines []string) {
	for line := range strings.Lines(b.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			lines = append(lines, line)
		}
	}
	return lines
}
