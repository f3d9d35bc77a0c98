package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// consoleView is the output of a pod's containers.
type consoleView struct {
	Output []containerOutput `json:"output"`
}

type containerOutput struct {
	Name   string `json:"name"`
	Output string `json:"output"`
}

// getConsole mirrors InstanceController.getConsoleOutput. As in Clouddriver, a request without
// a provider searches all of them, and instances of other providers are not found.
func (a *api) getConsole(w http.ResponseWriter, r *http.Request, p web.Params) error {
	query := r.URL.Query()
	provider := cmp.Or(web.SingleParam(query, "cloudProvider"), web.SingleParam(query, "provider"))
	if cmp.Or(provider, "kubernetes") != "kubernetes" {
		return vedette.Errorf(vedette.NotFound,
			"Instance not found (id: %s): this server has only instances of the provider kubernetes, not of %.100q", p["id"], provider)
	}
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read); err != nil {
		return err
	}
	kind, name, err := manifest.SplitName(p["id"])
	if err != nil {
		return err
	}
	if !strings.EqualFold(kind, "pod") {
		return vedette.Errorf(vedette.Invalid, "a %.100s has no console output: request one of its pods", kind)
	}
	ctx, cancel := context.WithTimeout(r.Context(), logTimeout)
	defer cancel()
	held := web.NewMemory(a.ReadLimiter, scope.LimitKey)
	defer held.Release()
	row, err := a.findObject(ctx, scope, "pod", name)
	var readErr *readError
	switch {
	case vedette.KindOf(err) == vedette.NotFound:
		return rest.WriteJSON(w, r, consoleView{[]containerOutput{{"Error", "Failed to retrieve pod data; pod may have been deleted."}}})
	case errors.As(err, &readErr):
		return rest.WriteJSON(w, r, consoleView{[]containerOutput{{"Error", "Failed to retrieve pod data: " + readErr.message}}})
	case err != nil:
		return err
	}
	containers, err := containerNames(ctx, held, &row)
	if err != nil {
		return err
	}
	outputs, err := a.containerOutputs(ctx, scope, held, logsOf{name, containers})
	if err != nil {
		return err
	}
	if err := held.Grow(ctx, encodedSize(outputs)); err != nil {
		return err
	}
	return rest.WriteJSON(w, r, consoleView{outputs})
}

// encodedSize returns what outputs take while they are encoded: a buffer that grows has up to twice its content.
func encodedSize(outputs []containerOutput) (bytes int) {
	for _, o := range outputs {
		bytes += 2 * web.JSONBytes(o.Output)
	}
	return bytes
}

// containerNames returns the names of a pod's containers, init containers first.
func containerNames(ctx context.Context, held *web.Memory, row *read.Row) ([]string, error) {
	type named struct {
		Name string `json:"name"`
	}
	var m struct {
		Spec struct {
			InitContainers []named `json:"initContainers"`
			Containers     []named `json:"containers"`
		} `json:"spec"`
	}
	if err := held.Decode(ctx, row.Body, &m); err != nil {
		return nil, fmt.Errorf("read %s of account %s: %w", row.Key, row.Account, err)
	}
	var names []string
	for _, c := range append(m.Spec.InitContainers, m.Spec.Containers...) {
		names = append(names, c.Name)
	}
	return names, nil
}

// logsOf names the logs of a pod.
type logsOf struct {
	pod        string
	containers []string
}

// Limits of the logs of one request: how many are read, and how many at the same time. Objects that agents
// report can have any number of containers.
const (
	maxContainers = 100
	logsAtOnce    = 8
)

// containerOutputs reads the logs of all containers concurrently. If a log cannot be read, the
// output is the error. The error is that there is no memory for more.
func (a *api) containerOutputs(ctx context.Context, scope web.Scope, held *web.Memory, of logsOf) ([]containerOutput, error) {
	containers := of.containers[:min(len(of.containers), maxContainers)]
	outputs := make([]containerOutput, len(containers))
	var group errgroup.Group
	group.SetLimit(logsAtOnce)
	for i, container := range containers {
		group.Go(func() error {
			tail := &tailBuffer{maxBytes: maxConsoleBytes / len(containers), grow: func(bytes int) error { return held.Grow(ctx, bytes) }}
			err := a.tail(ctx, scope, logOf{of.pod, container}, tail)
			outputs[i] = containerOutput{container, tail.String()}
			if err != nil {
				outputs[i].Output += err.Error()
			}
			return tail.growErr
		})
	}
	return outputs, group.Wait()
}

// maxConsoleBytes bounds the output of one pod. Containers share it equally, and the end of
// each log is shown.
const maxConsoleBytes = 4 << 20

func (a *api) tail(ctx context.Context, scope web.Scope, of logOf, tail *tailBuffer) error {
	log, err := a.openLog(ctx, scope, of.pod, of.container)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(tail, log)
	return err
}

// tailBuffer keeps at least the last maxBytes bytes that are written to it.
type tailBuffer struct {
	maxBytes  int
	grow      func(bytes int) error // is called before the buffer takes more memory
	growErr   error
	b         []byte
	reserved  int
	truncated bool
}

// Write implements io.Writer.
func (t *tailBuffer) Write(p []byte) (int, error) {
	if size := len(t.b) + len(p); size > t.reserved {
		if t.growErr = t.grow(2 * (size - t.reserved)); t.growErr != nil { // with the text that is made of it
			return 0, t.growErr
		}
		t.reserved = size
	}
	t.b = append(t.b, p...)
	if len(t.b) > 3*t.maxBytes/2 {
		t.b, t.truncated = append(t.b[:0], t.b[len(t.b)-t.maxBytes:]...), true
	}
	return len(p), nil
}

// String returns the content. If the beginning is missing, it starts with a whole line.
func (t *tailBuffer) String() string {
	if !t.truncated {
		return string(t.b)
	}
	_, whole, _ := strings.Cut(string(t.b), "\n")
	return whole
}
