package logs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// defaultContainerAnnotation names the container whose log is returned by default.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// Open opens what was requested of the logs of a pod. The caller closes it.
func Open(ctx context.Context, s *request.Sender, a vedette.LogsArgs) (io.ReadCloser, error) {
	a.Kind = cmp.Or(a.Kind, "Pod")
	a.APIVersion = cmp.Or(a.APIVersion, "v1")
	p, err := s.ResolveObject(ctx, a.Target)
	if err != nil {
		return nil, err
	}
	if p.Kind != (vedette.Kind{Name: "Pod"}) {
		return nil, vedette.Errorf(vedette.Invalid, "a %s has no logs: name one of its pods", p.Kind)
	}
	if a.Container != "" && !a.AllContainers {
		return openLog(ctx, s, p, a, a.Container)
	}
	containers, defaultName, err := containers(ctx, s, p)
	switch {
	case err != nil:
		return nil, err
	case !a.AllContainers:
		return openLog(ctx, s, p, a, defaultName)
	case a.Follow:
		return followAll(ctx, s, p, a, containers)
	}
	return openSequentially(ctx, s, p, a, containers)
}

// containers returns the names of a pod's containers, init containers first, and the default one.
func containers(ctx context.Context, s *request.Sender, p request.Path) (names []string, defaultName string, err error) {
	raw, _, err := s.Do(ctx, p, request.Request{})
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
	return names, cmp.Or(manifest.NestedString(pod, "metadata", "annotations", defaultContainerAnnotation), defaultName), nil
}

// openLog opens one container's log.
func openLog(ctx context.Context, s *request.Sender, p request.Path, a vedette.LogsArgs, container string) (io.ReadCloser, error) {
	if a.Follow {
		return openFollowed(ctx, s, p, a, container)
	}
	return s.Stream(ctx, p, "/log", logQuery(a, container))
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
func openSequentially(ctx context.Context, s *request.Sender, p request.Path, a vedette.LogsArgs, containers []string) (io.ReadCloser,
	error) {
	logs := &logChain{}
	logs.next = func() (io.ReadCloser, error) {
		var lastErr error = vedette.Errorf(vedette.NotFound, "%s has no containers", p.Key())
		for len(containers) > 0 {
			name := containers[0]
			containers = containers[1:]
			log, err := openLog(ctx, s, p, a, name)
			if request.StatusCode(err) != http.StatusBadRequest {
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
		if _, noMore := errors.AsType[*noMoreLogsError](err); noMore {
			err = io.EOF
		}
		if err != nil {
			c.current = http.NoBody
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

// Close closes the log that is being read.
func (c *logChain) Close() error { return c.current.Close() }
