package logs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// firstLineTimeout is how long to wait for the first line of a log that is followed. After it the
// log counts as open, because a kubelet sends its response with the first line, but errors at
// once.
const firstLineTimeout = 300 * time.Millisecond

// openFollowed opens the log of a container that may write nothing for hours. The caller closes it.
func openFollowed(ctx context.Context, s *request.Sender, p request.Path, a vedette.LogsArgs, container string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	pending := &pendingLog{ready: make(chan struct{}), cancel: cancel}
	go func() { // ends with the response, Close or ctx
		defer close(pending.ready)
		pending.log, pending.err = readLogUntilOpen(ctx, s, p, a, container)
	}()
	timer := time.NewTimer(firstLineTimeout)
	defer timer.Stop()
	select {
	case <-pending.ready:
		if pending.err != nil {
			cancel()
			return nil, pending.err
		}
	case <-timer.C:
	}
	return pending, nil
}

// readLogUntilOpen retries after a timeout of the transport. The next request includes what is
// written in between.
func readLogUntilOpen(ctx context.Context, s *request.Sender, p request.Path, a vedette.LogsArgs, container string) (io.ReadCloser, error) {
	started := time.Now()
	for {
		log, err := s.Stream(ctx, p, "/log", logQuery(a, container))
		var t interface{ Timeout() bool }
		if err == nil || ctx.Err() != nil || !errors.As(err, &t) || !t.Timeout() {
			return log, err
		}
		if a.TailLines != nil && *a.TailLines == 0 {
			a.TailLines, a.SinceTime = nil, started
		}
	}
}

// pendingLog is a log that may not be open yet.
type pendingLog struct {
	cancel context.CancelFunc
	ready  chan struct{} // closed once log and err are set
	log    io.ReadCloser
	err    error
}

// Read waits until the log opens.
func (s *pendingLog) Read(b []byte) (int, error) {
	<-s.ready
	if s.err != nil {
		return 0, s.err
	}
	return s.log.Read(b)
}

// Close closes the log, or cancels its opening.
func (s *pendingLog) Close() error {
	s.cancel()
	<-s.ready
	if s.log == nil {
		return nil
	}
	return s.log.Close()
}

// followAll follows all containers at once, line by line. The log ends when those of all containers
// have ended.
func followAll(ctx context.Context, s *request.Sender, p request.Path, a vedette.LogsArgs, containers []string) (io.ReadCloser, error) {
	logs, err := openAllFollowed(ctx, s, p, a, containers)
	if err != nil {
		return nil, err
	}
	reader, w := io.Pipe()
	var mu sync.Mutex
	var copies sync.WaitGroup
	for _, log := range logs {
		copies.Go(func() {
			defer log.Close()
			copyLines(w, &mu, log)
		})
	}
	go func() { // ends with the logs, which end when the reader is closed or ctx ends
		copies.Wait()
		w.Close()
	}()
	return reader, nil
}

func openAllFollowed(ctx context.Context, s *request.Sender, p request.Path, a vedette.LogsArgs, containers []string) ([]io.ReadCloser,
	error) {
	var logs []io.ReadCloser
	var lastErr error = vedette.Errorf(vedette.NotFound, "%s has no containers", p.Key())
	for _, name := range containers {
		log, err := openLog(ctx, s, p, a, name)
		switch {
		case err == nil:
			logs = append(logs, log)
		case request.StatusCode(err) == http.StatusBadRequest:
			lastErr = err
		default:
			for _, l := range logs {
				l.Close()
			}
			return nil, err
		}
	}
	if len(logs) == 0 {
		return nil, lastErr
	}
	return logs, nil
}

// copyLines writes whole lines, because several logs have the same writer. A line that is longer
// than the buffer is written in parts.
func copyLines(w io.Writer, mu *sync.Mutex, log io.Reader) {
	lines := bufio.NewReaderSize(log, 32<<10)
	for {
		line, err := lines.ReadSlice('\n')
		mu.Lock()
		_, writeErr := w.Write(line)
		mu.Unlock()
		if writeErr != nil || err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
