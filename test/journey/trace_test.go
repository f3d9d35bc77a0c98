package journey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestTraceOfADeployment deploys a Secret, and checks that the spans of both programs are one tree, and
// that no span contains the data.
func TestTraceOfADeployment(t *testing.T) {
	const data = "value-of-traced"
	h := start(t, agent.Account{Name: "one"}, redact.Config{})
	h.awaitLive(len(vedette.DefaultKinds))
	taskURI := h.deploy("01JTRACED", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"traced","namespace":"default",
		"annotations":{"strategy.spinnaker.io/versioned":"false"}},"stringData":{"a":"`+data+`"}}`)
	h.await("the end of the task", func() bool {
		var task struct {
			Status struct{ Completed, Failed bool }
		}
		return h.get(taskURI, &task) && task.Status.Completed && !task.Status.Failed && slices.ContainsFunc(h.spans.GetSpans(), isNamed("task"))
	})
	spans := h.spans.GetSpans()
	path := ancestors(spans, func(s tracetest.SpanStub) bool {
		return (s.Name == "POST API server" || s.Name == "PATCH API server") && strings.Contains(fmt.Sprint(s.Attributes), "/secrets")
	})
	if want := []string{"API server", "execute apply", "operation apply", "task", "POST REST"}; len(path) != len(want) ||
		!strings.HasSuffix(path[0], want[0]) || !slices.Equal(path[1:], want[1:]) {
		t.Errorf("got the path %q from the request to the API server, want %q", path, want)
	}
	if strings.Contains(fmt.Sprintf("%+v", spans), data) {
		t.Error("a span contains the data of the Secret")
	}
}

func isNamed(name string) func(tracetest.SpanStub) bool {
	return func(s tracetest.SpanStub) bool { return s.Name == name }
}

// ancestors returns the names of the first span for which is returns true, its parent, and so on.
func ancestors(spans tracetest.SpanStubs, is func(tracetest.SpanStub) bool) []string {
	var path []string
	for i := slices.IndexFunc(spans, is); i >= 0; {
		current := spans[i]
		path = append(path, current.Name)
		i = slices.IndexFunc(spans, func(s tracetest.SpanStub) bool {
			return current.Parent.SpanID().IsValid() && s.SpanContext.SpanID() == current.Parent.SpanID() && s.SpanContext.TraceID() == current.SpanContext.TraceID()
		})
	}
	return path
}
