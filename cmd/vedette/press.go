package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette/internal/client"
)

// press prints logs.
type press struct {
	client  *client.Client
	prefix  bool
	several bool
	limit   int64 // of bytes of each log; 0 for none

	mu          sync.Mutex
	out, errOut io.Writer
}

// print returns how many logs could not be read whole. Its error is one of the
// output, or the end of ctx.
func (p *press) print(ctx context.Context, logs []client.LogQuery, together bool) (failed int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	if !together {
		group.SetLimit(1)
	}
	for _, l := range logs {
		group.Go(func() error {
			err := p.copy(ctx, l)
			if ctx.Err() != nil || errors.Is(err, errOutput) || err == nil {
				return err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			failed++
			fmt.Fprintf(p.errOut, "Error from %s: the log of %s: %v\n", l.Account, logName(l), err)
			return nil
		})
	}
	err = group.Wait()
	if ctx.Err() != nil && !errors.Is(err, errOutput) {
		return failed, nil // interrupted, which is how following ends
	}
	return failed, err
}

func logName(l client.LogQuery) string {
	if l.Container == "" {
		return "pod/" + l.Pod
	}
	return "pod/" + l.Pod + "/" + l.Container
}

// copy prints one log by lines, so that those of several don't run into each
// other.
func (p *press) copy(ctx context.Context, l client.LogQuery) error {
	log, err := p.client.Logs(ctx, l)
	if err != nil {
		return err
	}
	defer log.Close()
	prefix := ""
	if p.prefix {
		prefix = "[" + l.Account + "/" + logName(l) + "] "
	}
	var from io.Reader = log
	if p.limit > 0 {
		from = io.LimitReader(log, p.limit)
	}
	lines, begun := bufio.NewReaderSize(from, 64<<10), false // within a line that is longer than the buffer
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if err := p.write(prefix, line, begun, err); err != nil {
				return err
			}
		}
		begun = errors.Is(err, bufio.ErrBufferFull)
		switch {
		case begun || err == nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("it broke off, and may go on after what is shown: %w", err)
		}
	}
}

// write prints a line, or a part of a long one. One that the end of its log has cut
// is ended where another log's could follow.
func (p *press) write(prefix string, line []byte, begun bool, why error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := string(line)
	if !begun {
		text = prefix + text
	}
	if p.several && why != nil && !errors.Is(why, bufio.ErrBufferFull) {
		text += "\n"
	}
	if _, err := io.WriteString(p.out, text); err != nil {
		return errors.Join(errOutput, err)
	}
	return nil
}
