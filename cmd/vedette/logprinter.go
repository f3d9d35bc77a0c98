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

// logPrinter prints logs.
type logPrinter struct {
	client     *client.Client
	prefix     bool
	multiple   bool
	limitBytes int64 // of bytes of each log; 0 for none

	mu          sync.Mutex
	out, errOut io.Writer
}

// print returns how many logs could not be read whole. Its error is one of the
// output, or the end of ctx.
func (p *logPrinter) print(ctx context.Context, logs []client.LogQuery, concurrent bool) (failed int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	if !concurrent {
		group.SetLimit(1)
	}
	for _, l := range logs {
		group.Go(func() error {
			err := p.copyLog(ctx, l)
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

// copyLog prints one log by lines, so that those of several don't run into each
// other.
func (p *logPrinter) copyLog(ctx context.Context, l client.LogQuery) error {
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
	if p.limitBytes > 0 {
		from = io.LimitReader(log, p.limitBytes)
	}
	lines, continued := bufio.NewReaderSize(from, 64<<10), false // within a line that is longer than the buffer
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if err := p.write(prefix, line, continued, err); err != nil {
				return err
			}
		}
		continued = errors.Is(err, bufio.ErrBufferFull)
		switch {
		case continued || err == nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("it broke off, and may go on after what is shown: %w", err)
		}
	}
}

// write prints a line, or a part of a long one. One that the end of its log has cut
// is ended where another log's could follow.
func (p *logPrinter) write(prefix string, line []byte, continued bool, readErr error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := string(line)
	if !continued {
		text = prefix + text
	}
	if p.multiple && readErr != nil && !errors.Is(readErr, bufio.ErrBufferFull) {
		text += "\n"
	}
	if _, err := io.WriteString(p.out, text); err != nil {
		return errors.Join(errOutput, err)
	}
	return nil
}
