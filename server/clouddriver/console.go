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

// consoleView is what the containers of a pod wrote.
type consoleView struct {
	Output []containerOutput `json:"output"`
}

type containerOutput struct {
	Name   string `json:"name"`
	Output string `json:"output"`
}

// getConsole mirrors InstanceController.getConsoleOutput. As there, any provider
// may be meant where none is named, and what another one may have is not found.
func (a *api) getConsole(w http.ResponseWriter, r *http.Request, p parts) error {
	query := r.URL.Query()
	if provider := or(query.Get("cloudProvider"), query.Get("provider")); or(provider, "kubernetes") != "kubernetes" {
		return vedette.Errorf(vedette.NotFound, "Instance not found (id: %s): this server knows those of kubernetes, and the parameter provider says %.100q", p["id"], provider)
	}
	at := placeOf(r, p)
	if err := a.Authority.CheckAccount(r.Context(), at.caller, at.account, authorize.Read); err != nil {
		return err
	}
	kind, name, err := splitName(p["id"])
	if err != nil {
		return err
	}
	if !strings.EqualFold(kind, "pod") {
		return vedette.Errorf(vedette.Invalid, "a %.100s has no console: name one of its pods", kind)
	}
	ctx, cancel := context.WithTimeout(r.Context(), logPatience)
	defer cancel()
	row, err := a.find(ctx, at, "pod", name)
	var failed *readFailure
	switch {
	case vedette.KindOf(err) == vedette.NotFound:
		return writeJSON(w, r, consoleView{[]containerOutput{{"Error", "Failed to retrieve pod data; pod may have been deleted."}}})
	case errors.As(err, &failed):
		return writeJSON(w, r, consoleView{[]containerOutput{{"Error", "Failed to retrieve pod data: " + failed.message}}})
	case err != nil:
		return err
	}
	containers, err := containersOf(&row)
	if err != nil {
		return err
	}
	return writeJSON(w, r, consoleView{a.outputs(ctx, at, name, containers)})
}

// containersOf names a pod's containers, those that run first first.
func containersOf(row *store.Row) ([]string, error) {
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

// outputs reads the logs of containers all at once, and says of one that has
// none why.
func (a *api) outputs(ctx context.Context, at place, pod string, containers []string) []containerOutput {
	outputs := make([]containerOutput, len(containers))
	var all sync.WaitGroup
	for i, container := range containers {
		all.Go(func() {
			text, err := a.tail(ctx, at, pod, container, mostConsole/len(containers))
			if err != nil {
				text += err.Error()
			}
			outputs[i] = containerOutput{container, text}
		})
	}
	all.Wait()
	return outputs
}

// mostConsole is what is shown of a pod's logs: their ends, in equal parts.
const mostConsole = 4 << 20

func (a *api) tail(ctx context.Context, at place, pod, container string, most int) (string, error) {
	log, err := a.log(ctx, at, pod, container)
	if err != nil {
		return "", err
	}
	defer log.Close()
	end := ending{most: most}
	_, err = io.Copy(&end, log)
	return end.String(), err
}

// ending keeps the last bytes of what is written to it, or some more.
type ending struct {
	most int
	b    []byte
	cut  bool
}

// Write never fails.
func (e *ending) Write(p []byte) (int, error) {
	e.b = append(e.b, p...)
	if len(e.b) > 2*e.most {
		e.b, e.cut = append(e.b[:0], e.b[len(e.b)-e.most:]...), true
	}
	return len(p), nil
}

// String begins with a whole line where the beginning is missing.
func (e *ending) String() string {
	if !e.cut {
		return string(e.b)
	}
	_, whole, _ := strings.Cut(string(e.b), "\n")
	return whole
}
