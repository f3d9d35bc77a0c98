package authorize

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/fair"
)

// The limits of Fiat's answers. 10,000 applications of a user have about 600 KB, and become 9 MiB at most.
const (
	maxResponseBytes    = 8 << 20  // of one answer
	maxPermissionsBytes = 64 << 20 // what one answer may take in memory
	// maxAnswersBytes is what all answers may take while they are read and decoded. Callers choose users, and so
	// how many answers there are at once.
	maxAnswersBytes = 96 << 20
	// smallAnswerBytes is what a small answer takes at most. Small ones have a quarter for themselves, so that
	// they do not wait for large ones.
	smallAnswerBytes = 1 << 20
	// maxCachedBytes is what all cached permissions may take.
	maxCachedBytes = 48 << 20
	memoryTimeout  = 4 * time.Second // how long an answer waits for memory
	// measuring is how many times its bytes an answer takes at most while it is measured, besides its text.
	measuring = 8
	firstRead = 16 << 10
)

// answerMemory is the memory of all answers that are read and decoded. Users take turns.
type answerMemory struct{ small, large *fair.Line }

func newAnswerMemory() answerMemory {
	line := func(capacity int64) *fair.Line {
		return fair.New(fair.Config{Capacity: capacity, Share: capacity, Wait: memoryTimeout})
	}
	return answerMemory{line(maxAnswersBytes / 4), line(maxAnswersBytes - maxAnswersBytes/4)}
}

// answerGrant is the memory of one answer.
type answerGrant struct {
	memory answerMemory
	user   string
	grant  *fair.Grant // nil for none
}

// hold waits until the answer may take so many bytes. It holds nothing meanwhile, so that answers do not wait
// for each other.
func (g *answerGrant) hold(ctx context.Context, size int64) (err error) {
	if size <= g.grant.Units() {
		return nil
	}
	g.grant.Release()
	line := g.memory.large
	if size <= smallAnswerBytes {
		line = g.memory.small
	}
	if g.grant, err = line.Acquire(ctx, g.user, size); err != nil {
		return fmt.Errorf("the answers about other users use the memory that this server has for Fiat: %w", err)
	}
	return nil
}

func (g *answerGrant) release() { g.grant.Release() }

var errLongAnswer = fmt.Errorf("the answer has more than %d MiB", maxResponseBytes>>20)

// read reads an answer, and decodes it when there is memory for what it becomes.
func (g *answerGrant) read(ctx context.Context, answer io.Reader) (parsed fiatResponse, err error) {
	var body bytes.Buffer
	for more := int64(firstRead); ; more = min(int64(body.Len()), maxResponseBytes+1-int64(body.Len())) {
		// A buffer has up to twice its content, and while it grows also the content.
		if err := g.hold(ctx, 3*(int64(body.Len())+more)); err != nil {
			return parsed, err
		}
		n, err := io.CopyN(&body, answer, more)
		switch {
		case body.Len() > maxResponseBytes:
			return parsed, errLongAnswer
		case errors.Is(err, io.EOF):
			return g.decode(ctx, body.Bytes())
		case err != nil:
			return parsed, fmt.Errorf("after %d bytes: %w", int64(body.Len())-n, err)
		}
	}
}

func (g *answerGrant) decode(ctx context.Context, body []byte) (parsed fiatResponse, err error) {
	text := int64(len(body))
	if err := g.hold(ctx, (2+measuring)*text); err != nil {
		return parsed, err
	}
	limits := exactjson.Limits{Bytes: maxPermissionsBytes}
	measured, err := exactjson.Measure(body, &parsed, limits)
	if err != nil {
		return parsed, err
	}
	if err := g.hold(ctx, 2*text+measured.Bytes); err != nil {
		return parsed, err
	}
	return parsed, exactjson.Unmarshal(body, &parsed, limits)
}
