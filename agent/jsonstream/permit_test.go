package jsonstream

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// permitLog records the calls of a Splitter.
type permitLog struct {
	calls     []string
	contended bool
}

func (p *permitLog) Acquire(size int) error {
	p.calls = append(p.calls, fmt.Sprint("acquire ", size>>10))
	return nil
}
func (p *permitLog) StartWait() (stop func()) { return func() {} }
func (p *permitLog) ObjectDone() bool         { return p.contended }
func (p *permitLog) Release(size int)         { p.calls = append(p.calls, fmt.Sprint("release ", size>>10)) }

// A Splitter acquires each larger buffer, gives a large one back if others wait, and all of it at the end.
func TestSplitterUsesItsPermit(t *testing.T) {
	list := `{"items":[{"a":"` + strings.Repeat("x", 60<<10) + `"}` + strings.Repeat(`,{"b":"`+strings.Repeat("y", 1000)+`"}`, 500) + `]}`
	for _, tt := range []struct {
		contended bool
		free      int
		want      []string
	}{
		{false, 0, []string{"acquire 8", "acquire 16", "acquire 32", "acquire 64", "release 0"}},
		{true, 0, []string{"acquire 8", "acquire 16", "acquire 32", "acquire 64", "release 8", "release 0"}},
		{false, 32 << 10, []string{"acquire 64", "release 0"}},
		{true, 32 << 10, []string{"acquire 64", "release 32"}},
		{true, 64 << 10, nil},
	} {
		permit := &permitLog{contended: tt.contended}
		s := NewSplitter(io.NopCloser(strings.NewReader(list)), new(BufferPool), Options{Permit: permit, FreeBuffer: tt.free})
		objects := 0
		if _, err := s.List(nil, func([]byte) error { objects++; return nil }); !errors.Is(err, ErrNoVersion) || objects != 501 {
			t.Fatalf("got %d objects, %v", objects, err)
		}
		s.Close()
		if !slices.Equal(permit.calls, tt.want) {
			t.Errorf("contended %t, %d KiB free: got %q, want %q", tt.contended, tt.free>>10, permit.calls, tt.want)
		}
	}
}
