package clouddriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store"
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
func (a *api) getConsole(w http.ResponseWriter, r *http.Request, p pathParams) error {
	query := r.URL.Query()
	if provider := orDefault(query.Get("cloudProvider"), query.Get("provider")); orDefault(provider, "kubernetes") != "kubernetes" {
		return vedette.Errorf(vedette.NotFound,
			"Instance not found (id: %s): this server has only instances of the provider kubernetes, not of %.100q", p["id"], provider)
	}
	scope := newRequestScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.caller, scope.account, authorize.Read); err != nil {
		return err
	}
	kind, name, err := splitName(p["id"])
	if err != nil {
		return err
	}
	if !strings.EqualFold(kind, "pod") {
		return vedette.Errorf(vedette.Invalid, "a %.100s has no console output: request one of its pods", kind)
	}
	ctx, cancel := context.WithTimeout(r.Context(), logTimeout)
	defer cancel()
	row, err := a.findObject(ctx, scope, "pod", name)
	var readErr *readError
	switch {
	case vedette.KindOf(err) == vedette.NotFound:
		return writeJSON(w, r, consoleView{[]containerOutput{{"Error", "Failed to retrieve pod data; pod may have been deleted."}}})
	case errors.As(err, &readErr):
		return writeJSON(w, r, consoleView{[]containerOutput{{"Error", "Failed to retrieve pod data: " + readErr.message}}})
	case err != nil:
		return err
	}
	containers, err := containerNames(&row)
	if err != nil {
		return err
	}
	return writeJSON(w, r, consoleView{a.containerOutputs(ctx, scope, name, containers)})
}

// containerNames returns the names of a pod's containers, init containers first.
func containerNames(row *store.Row) ([]string, error) {
	type named struct{ Name string }
	var m struct {
		Spec struct{ InitContainers, Containers []named }
	}
	if err := json.Unmarshal(row.Body, &m); err != nil {
		return nil, fmt.Errorf("read %s of account %s: %w", row.Key, row.Account, err)
	}
	var names []string
	for _, c := range append(m.Spec.InitContainers, m.Spec.Containers...) {
		names = append(names, c.Name)
	}
	return names, nil
}

// containerOutputs reads the logs of all containers concurrently. If a log cannot be read, the
// output is the error.
func (a *api) containerOutputs(ctx context.Context, scope requestScope, pod string, containers []string) []containerOutput {
	outputs := make([]containerOutput, len(containers))
	var wg sync.WaitGroup
	for i, container := range containers {
		wg.Go(func() {
			text, err := a.tail(ctx, scope, pod, container, maxConsoleBytes/len(containers))
			if err != nil {
				text += err.Error()
			}
			outputs[i] = containerOutput{container, text}
		})
	}
	wg.Wait()
	return outputs
}

// maxConsoleBytes bounds the output of one pod. Containers share it equally, and the end of
// each log is shown.
const maxConsoleBytes = 4 << 20

func (a *api) tail(ctx context.Context, scope requestScope, pod, container string, maxBytes int) (string, error) {
	log, err := a.openLog(ctx, scope, pod, container)
	if err != nil {
		return "", err
	}
	defer log.Close()
	tail := tailBuffer{maxBytes: maxBytes}
	_, err = io.Copy(&tail, log)
	return tail.String(), err
}

// tailBuffer keeps at least the last maxBytes bytes that are written to it.
type tailBuffer struct {
	maxBytes  int
	b         []byte
	truncated bool
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*t.maxBytes {
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
