package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// defaultContainerAnnotation names the container whose log is returned by default.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// logs opens the logs of a pod's containers. The deadline applies to opening. Reading may take until
// ctx ends.
func (r *run) logs(ctx context.Context, deadline time.Time, a vedette.LogsArgs) result {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(time.Until(deadline), func() { cancel(context.DeadlineExceeded) })
	stream, err := r.openLogs(ctx, a)
	if !timer.Stop() && err == nil {
		stream.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = fmt.Errorf("open the log: %w (%w)", err, context.DeadlineExceeded)
		}
		cancel(nil)
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Stream: &cancelingReadCloser{stream, func() { cancel(nil) }}}}
}

// cancelingReadCloser cancels the requests behind a stream when it is closed.
type cancelingReadCloser struct {
	io.ReadCloser
	cancel func()
}

// Close closes the stream and cancels the requests behind it.
func (c *cancelingReadCloser) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

func (r *run) openLogs(ctx context.Context, a vedette.LogsArgs) (io.ReadCloser, error) {
	a.Kind = firstNonEmpty(a.Kind, "Pod")
	a.APIVersion = firstNonEmpty(a.APIVersion, "v1")
	p, err := r.resolveObject(ctx, a.Target)
	if err != nil {
		return nil, err
	}
	if p.Kind != (vedette.Kind{Name: "Pod"}) {
		return nil, vedette.Errorf(vedette.Invalid, "a %s has no logs: name one of its pods", p.Kind)
	}
	if a.Container != "" && !a.AllContainers {
		return r.openLog(ctx, p, a, a.Container)
	}
	containers, defaultName, err := r.containers(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case !a.AllContainers:
		return r.openLog(ctx, p, a, defaultName)
	case a.Follow:
		return r.followAll(ctx, p, a, containers)
	}
	return r.openSequentially(ctx, p, a, containers)
}

// containers returns the names of a pod's containers, init containers first, and the default one.
func (r *run) containers(ctx context.Context, p resourcePath) (names []string, defaultName string, err error) {
	raw, _, err := r.do(ctx, p, request{})
	if err != nil {
		return nil, "", err
	}
	pod, err := manifest.ParseObject(raw, "pod")
	if err != nil {
		return nil, "", err
	}
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		list, _ := manifest.Nested(pod, "spec", field).([]any)
		for i, c := range list {
			names = append(names, manifest.NestedString(c, "name"))
			if field == "containers" && i == 0 {
				defaultName = manifest.NestedString(c, "name")
			}
		}
	}
	return names, firstNonEmpty(manifest.NestedString(pod, "metadata", "annotations", defaultContainerAnnotation), defaultName), nil
}

// openLog opens one container's log.
func (r *run) openLog(ctx context.Context, p resourcePath, a vedette.LogsArgs, container string) (io.ReadCloser, error) {
	if a.Follow {
		return r.openFollowed(ctx, p, a, container)
	}
	return r.readLog(ctx, p, a, container)
}

func (r *run) readLog(ctx context.Context, p resourcePath, a vedette.LogsArgs, container string) (io.ReadCloser, error) {
	resp, err := r.logged(ctx, r.operator.cluster.Stream,
		kube.Request{Path: p.urlPath() + "/log", Query: logQuery(a, container), Accept: "*/*"})
	if err != nil {
		return nil, err
	}
	r.warnings.addHeader(resp.Header)
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, r.readStatusError(ctx, resp)
	}
	return resp.Body, nil
}

func logQuery(a vedette.LogsArgs, container string) url.Values {
	q := url.Values{"container": {container}}
	for name, on := range map[string]bool{"previous": a.Previous, "follow": a.Follow, "timestamps": a.Timestamps} {
		if on {
			q.Set(name, "true")
		}
	}
	if a.TailLines != nil {
		q.Set("tailLines", strconv.FormatInt(*a.TailLines, 10))
	}
	if a.SinceSeconds != nil {
		q.Set("sinceSeconds", strconv.FormatInt(*a.SinceSeconds, 10))
	}
	if !a.SinceTime.IsZero() {
		q.Set("sinceTime", a.SinceTime.UTC().Format(time.RFC3339))
	}
	return q
}

// openSequentially opens the containers' logs one after the other. Containers without a log, for
// example because they have not started, are skipped, unless none has one.
func (r *run) openSequentially(ctx context.Context, p resourcePath, a vedette.LogsArgs, containers []string) (io.ReadCloser, error) {
	logs := &logChain{}
	logs.next = func() (io.ReadCloser, error) {
		var lastErr error = vedette.Errorf(vedette.NotFound, "%s has no containers", p.key())
		for len(containers) > 0 {
			name := containers[0]
			containers = containers[1:]
			log, err := r.openLog(ctx, p, a, name)
			if statusCode(err) != http.StatusBadRequest {
				return log, err
			}
			lastErr = err
		}
		return nil, &noMoreLogsError{lastErr}
	}
	var err error
	logs.current, err = logs.next()
	return logs, err
}

// noMoreLogsError means that no further container has a log. It wraps the last reason.
type noMoreLogsError struct{ error }

// Unwrap returns the reason.
func (e *noMoreLogsError) Unwrap() error { return e.error }

// logChain reads several logs as one.
type logChain struct {
	current io.ReadCloser
	next    func() (io.ReadCloser, error)
}

// Read continues with the next log when one ends.
func (c *logChain) Read(b []byte) (int, error) {
	for {
		n, err := c.current.Read(b)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, suppressEOF(n, err)
		}
		c.current.Close()
		nextLog, err := c.next()
		var noMore *noMoreLogsError
		if errors.As(err, &noMore) {
			c.current = io.NopCloser(emptyReader{})
			return 0, io.EOF
		}
		if err != nil {
			c.current = io.NopCloser(emptyReader{})
			return 0, err
		}
		c.current = nextLog
	}
}

// suppressEOF removes an EOF that came with data, because it is not the end of the chain.
func suppressEOF(n int, err error) error {
	if n > 0 && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

// Close closes the log that is being read.
func (c *logChain) Close() error { return c.current.Close() }
