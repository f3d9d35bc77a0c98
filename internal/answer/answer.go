// Package answer reads JSON answers of other services within a limit of memory. Callers choose how many answers
// there are at once, and a service how large they are.
package answer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vedette-io/vedette/internal/bytesize"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/fair"
)

const (
	// smallBytes is what a small answer takes at most. Small ones have a quarter of the memory for themselves, so that
	// they do not wait for large ones.
	smallBytes = 1 << 20
	// measuring is how many times its bytes an answer takes at most while it is measured, besides its text.
	measuring = 8
	firstRead = 16 << 10
)

// Config limits the answers of one service.
type Config struct {
	Service      string        // its name in errors, such as "Fiat"
	TextBytes    int64         // of one answer
	DecodedBytes int64         // what one answer may take in memory
	Bytes        int64         // what all answers may take while they are read and decoded
	Wait         time.Duration // how long an answer waits for memory
}

// Reader reads the answers of one service. Callers take turns. It is safe for concurrent use.
type Reader struct {
	cfg          Config
	small, large *fair.Line
	largeBytes   int64 // the capacity of large
}

// NewReader returns a Reader.
func NewReader(cfg Config) *Reader {
	line := func(capacity int64) *fair.Line {
		return fair.New(fair.Config{Capacity: capacity, Share: capacity, Wait: cfg.Wait})
	}
	large := cfg.Bytes - cfg.Bytes/4
	return &Reader{cfg, line(cfg.Bytes / 4), line(large), large}
}

// TooLongError reports an answer that has more bytes than Config.TextBytes.
type TooLongError struct{ limit int64 }

// Error says what the limit is.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("the answer has more than %s", bytesize.Text(e.limit))
}

// Grant is the memory of one answer and of what it was decoded into.
type Grant struct {
	reader *Reader
	caller string
	grant  *fair.Grant // nil for none
}

// Begin returns a Grant for one answer, which counts for caller. It holds no memory until Read. Release it when the
// decoded value is no longer used.
func (r *Reader) Begin(caller string) *Grant { return &Grant{reader: r, caller: caller} }

// Release returns the memory.
func (g *Grant) Release() { g.grant.Release() }

// hold waits until the answer may take so many bytes. It holds nothing meanwhile, so that answers do not wait
// for each other.
func (g *Grant) hold(ctx context.Context, size int64) (err error) {
	size = min(size, g.reader.largeBytes) // one that may become more is alone
	if size <= g.grant.Units() {
		return nil
	}
	g.grant.Release()
	line := g.reader.large
	if size <= smallBytes {
		line = g.reader.small
	}
	if g.grant, err = line.Acquire(ctx, g.caller, size); err != nil {
		return fmt.Errorf("other answers use the memory that this server has for %s: %w", g.reader.cfg.Service, err)
	}
	return nil
}

// Read reads an answer, and decodes it when there is memory for what it becomes. The error is a TooLongError if it is
// too long.
func (g *Grant) Read(ctx context.Context, answer io.Reader, into any) error {
	var body bytes.Buffer
	limit := g.reader.cfg.TextBytes
	for more := int64(firstRead); ; more = min(int64(body.Len()), limit+1-int64(body.Len())) {
		// A buffer has up to twice its content, and while it grows also the content.
		if err := g.hold(ctx, 3*(int64(body.Len())+more)); err != nil {
			return err
		}
		n, err := io.CopyN(&body, answer, more)
		switch {
		case int64(body.Len()) > limit:
			return &TooLongError{limit}
		case errors.Is(err, io.EOF):
			return g.decode(ctx, body.Bytes(), into)
		case err != nil:
			return fmt.Errorf("after %d bytes: %w", int64(body.Len())-n, err)
		}
	}
}

func (g *Grant) decode(ctx context.Context, body []byte, into any) error {
	text := int64(len(body))
	if err := g.hold(ctx, (2+measuring)*text); err != nil {
		return err
	}
	limits := exactjson.Limits{Bytes: g.reader.cfg.DecodedBytes}
	measured, err := exactjson.Measure(body, into, limits)
	if err != nil {
		return invalid(err)
	}
	if err := g.hold(ctx, 2*text+measured.Bytes); err != nil {
		return err
	}
	return invalid(exactjson.Unmarshal(body, into, limits))
}

func invalid(err error) error {
	if err != nil {
		return fmt.Errorf("the answer is not valid: %w", err)
	}
	return nil
}
