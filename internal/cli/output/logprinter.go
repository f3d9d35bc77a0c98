package output

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

// LogPrinter copies logs of containers to Out.
type LogPrinter struct {
	Client     *client.Client
	Prefix     bool
	Multiple   bool
	LimitBytes int64 // for each log; 0 for no limit

	mu          sync.Mutex
	Out, ErrOut io.Writer
}

// Print returns how many logs could not be read completely. Its error is an error of writing
// to Out. If ctx ends, Print returns nil, because that is how a user stops to follow logs.
func (p *LogPrinter) Print(ctx context.Context, logs []client.LogQuery, concurrent bool) (failed int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	if !concurrent {
		group.SetLimit(1)
	}
	for _, l := range logs {
		group.Go(func() error {
			err := p.copyLog(ctx, l)
			if ctx.Err() != nil || errors.Is(err, ErrWrite) || err == nil {
				return err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			failed++
			fmt.Fprintln(p.ErrOut, Sanitize(fmt.Sprintf("Error from %s: log of %s: %v", l.Account, logName(l), err)))
			return nil
		})
	}
	err = group.Wait()
	if ctx.Err() != nil && !errors.Is(err, ErrWrite) {
		return failed, nil
	}
	return failed, err
}

func logName(l client.LogQuery) string {
	if l.Container == "" {
		return "pod/" + l.Name
	}
	return "pod/" + l.Name + "/" + l.Container
}

// copyLog prints one log line by line, so that lines of several logs do not mix.
func (p *LogPrinter) copyLog(ctx context.Context, l client.LogQuery) error {
	log, err := p.Client.Logs(ctx, l)
	if err != nil {
		return err
	}
	defer log.Close()
	prefix := ""
	if p.Prefix {
		prefix = Sanitize("[" + l.Account + "/" + logName(l) + "] ")
	}
	var from io.Reader = log
	if p.LimitBytes > 0 {
		from = io.LimitReader(log, p.LimitBytes)
	}
	lines, continued := bufio.NewReaderSize(from, 64<<10), false // continued: within a line that is longer than the buffer
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
			return fmt.Errorf("connection lost, the log may have more lines: %w", err)
		}
	}
}

// write prints a line, or a part of a long line. It ends a line without a newline at the end
// of its log if lines of other logs may follow.
func (p *LogPrinter) write(prefix string, line []byte, continued bool, readErr error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := string(line)
	if !continued {
		text = prefix + text
	}
	if p.Multiple && readErr != nil && !errors.Is(readErr, bufio.ErrBufferFull) {
		text += "\n"
	}
	if _, err := io.WriteString(p.Out, text); err != nil {
		return errors.Join(ErrWrite, err)
	}
	return nil
}
