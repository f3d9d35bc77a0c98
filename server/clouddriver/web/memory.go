package web

import (
	"context"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

// ObjectLimits are for objects of clusters, which are at most 16 MiB. Those that people write become less
// than a tenth of it.
var ObjectLimits = exactjson.Limits{Bytes: 64 << 20}

// Memory that a request takes is reserved in parts, so that most requests wait for none.
const (
	freeMemory = 256 << 10
	memoryPart = 4 << 20
)

// NewMemory returns the memory of one request, which must be released.
func NewMemory(limiter *readlimit.Limiter, caller readlimit.Caller) *Memory {
	return &Memory{limiter: limiter, caller: caller}
}

// Memory is what a request holds whose size is known only while it is read, like logs. It must be released.
// It is safe for concurrent use.
type Memory struct {
	limiter *readlimit.Limiter
	caller  readlimit.Caller

	mu       sync.Mutex
	used     int64
	reserved int64
	releases []func()
}

// Grow waits until the request may hold so many bytes more.
func (m *Memory) Grow(ctx context.Context, bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used += int64(bytes)
	if m.used <= freeMemory || m.used <= m.reserved {
		return nil
	}
	part := max(m.used-m.reserved, memoryPart)
	release, err := m.limiter.Acquire(ctx, m.caller, part)
	if err != nil {
		return err
	}
	m.reserved += part
	m.releases = append(m.releases, release)
	return nil
}

// ObjectCopies is how often an object's bytes are in memory during a request: as read, with
// Clouddriver's numbers, and in the response, whose buffer grows by doubling.
const ObjectCopies = 5

// ObjectBytes returns the memory that an object of a cluster takes in a request that decodes it. The error is that it
// would become too much.
func ObjectBytes(row *read.Row) (int64, error) {
	size, err := exactjson.Measure(row.Body, new(any), ObjectLimits)
	if err != nil {
		return 0, fmt.Errorf("read %s of account %s: %w", row.Key, row.Account, err)
	}
	return ObjectCopies*int64(len(row.Body)) + size.Bytes, nil
}

// Decode decodes an object of a cluster when there is memory for it and for what it becomes. Both are held until
// the request ends.
func (m *Memory) Decode(ctx context.Context, object []byte, v any) error {
	size, err := exactjson.Measure(object, v, ObjectLimits)
	if err != nil {
		return err
	}
	if err := m.Grow(ctx, int(size.Bytes)); err != nil {
		return err
	}
	return exactjson.Unmarshal(object, v, ObjectLimits)
}

// JSONBytes returns what a text has at most as JSON. A byte that is not UTF-8 becomes six, like a control character.
func JSONBytes(text string) (bytes int) {
	other := 2 // the two separators that are escaped have three bytes
	if !utf8.ValidString(text) {
		other = 6
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ':
			bytes += 6
		case c == '"' || c == '\\':
			bytes += 2
		case c >= utf8.RuneSelf:
			bytes += other
		default:
			bytes++
		}
	}
	return bytes
}

// Release gives the memory back.
func (m *Memory) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, release := range m.releases {
		release()
	}
}
