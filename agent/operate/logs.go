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
	"github.com/vedette-io/vedette/agent/watch"
)

// defaultContainer is the annotation of a pod that says whose logs are meant.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// logs opens what the containers of a pod wrote. The deadline bounds the
// opening; reading may take as long as ctx lasts.
func (o *Operator) logs(ctx context.Context, deadline time.Time, a vedette.LogsArgs) result {
	ctx, cancel := context.WithCancelCause(ctx)
	alarm := time.AfterFunc(time.Until(deadline), func() { cancel(context.DeadlineExceeded) })
	stream, err := o.openLogs(ctx, a)
	if !alarm.Stop() && err == nil {
		stream.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = fmt.Errorf("open the log: %w (%w)", err, context.DeadlineExceeded)
		}
		cancel(nil)
		return failed(err)
	}
	return result{Outcome: vedette.Outcome{Stream: &closing{stream, func() { cancel(nil) }}}}
}

// closing ends what feeds a stream along with it.
type closing struct {
	io.ReadCloser
	also func()
}

// Close ends the stream and all requests behind it.
func (c *closing) Close() error {
	defer c.also()
	return c.ReadCloser.Close()
}

func (o *Operator) openLogs(ctx context.Context, a vedette.LogsArgs) (io.ReadCloser, error) {
	a.Kind = firstOf(a.Kind, "Pod")
	a.APIVersion = firstOf(a.APIVersion, "v1")
	p, err := o.find(ctx, a.Target)
	if err != nil {
		return nil, err
	}
	if p.Kind != (vedette.Kind{Name: "Pod"}) {
		return nil, vedette.Errorf(vedette.Invalid, "a %s has no logs: name one of its pods", p.Kind)
	}
	if a.Container != "" && !a.AllContainers {
		return o.openLog(ctx, p, a, a.Container)
	}
	containers, chosen, err := o.containers(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case !a.AllContainers:
		return o.openLog(ctx, p, a, chosen)
	case a.Follow:
		return o.followAll(ctx, p, a, containers)
	}
	return o.openAll(ctx, p, a, containers)
}

// containers returns a pod's containers, the init containers first, and the one
// that is meant where none is named.
func (o *Operator) containers(ctx context.Context, p place) (all []string, chosen string, err error) {
	raw, _, err := o.do(ctx, p, call{})
	if err != nil {
		return nil, "", err
	}
	pod, err := parseObject(raw, "pod")
	if err != nil {
		return nil, "", err
	}
	for _, sort := range []string{"initContainers", "containers", "ephemeralContainers"} {
		list, _ := dig(pod, "spec", sort).([]any)
		for i, c := range list {
			all = append(all, text(c, "name"))
			if sort == "containers" && i == 0 {
				chosen = text(c, "name")
			}
		}
	}
	return all, firstOf(text(pod, "metadata", "annotations", defaultContainer), chosen), nil
}

// openLog opens one container's log. One that is followed opens when its
// container writes.
func (o *Operator) openLog(ctx context.Context, p place, a vedette.LogsArgs, container string) (io.ReadCloser, error) {
	if a.Follow {
		return o.follow(ctx, p, a, container)
	}
	return o.readLog(ctx, p, a, container)
}

func (o *Operator) readLog(ctx context.Context, p place, a vedette.LogsArgs, container string) (io.ReadCloser, error) {
	resp, err := o.cluster.Stream(ctx, watch.Request{Path: p.path() + "/log", Query: logQuery(a, container), Accept: "*/*"})
	if err != nil {
		return nil, err
	}
	noteWarnings(ctx, resp.Header)
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readRefusal(resp)
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

// openAll opens one container's log after the other. A container that has none
// (it did not start yet, or never before) is passed over, unless that goes for
// all of them.
func (o *Operator) openAll(ctx context.Context, p place, a vedette.LogsArgs, containers []string) (io.ReadCloser, error) {
	r := &chain{}
	r.next = func() (io.ReadCloser, error) {
		var refused error = vedette.Errorf(vedette.NotFound, "%s has no containers", p.key())
		for len(containers) > 0 {
			name := containers[0]
			containers = containers[1:]
			log, err := o.openLog(ctx, p, a, name)
			if statusOf(err) != http.StatusBadRequest {
				return log, err
			}
			refused = err
		}
		return nil, &lastError{refused}
	}
	var err error
	r.now, err = r.next()
	return r, err
}

// lastError says that there is no further log, and why.
type lastError struct{ error }

// Unwrap returns the reason.
func (e *lastError) Unwrap() error { return e.error }

// chain reads one log after the other.
type chain struct {
	now  io.ReadCloser
	next func() (io.ReadCloser, error)
}

// Read goes on with the next log where one ends.
func (c *chain) Read(b []byte) (int, error) {
	for {
		n, err := c.now.Read(b)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, dropEOF(n, err)
		}
		c.now.Close()
		following, err := c.next()
		var last *lastError
		if errors.As(err, &last) {
			c.now = io.NopCloser(eof{})
			return 0, io.EOF
		}
		if err != nil {
			c.now = io.NopCloser(eof{})
			return 0, err
		}
		c.now = following
	}
}

// dropEOF keeps the end of one log from being taken for the end of all.
func dropEOF(n int, err error) error {
	if n > 0 && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Close ends the log that is being read.
func (c *chain) Close() error { return c.now.Close() }
