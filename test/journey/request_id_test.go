package journey

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestOneIDFollowsADeployment deploys as Orca does, and finds each step of the deployment in the logs
// of both programs by the id of the execution. The object's data is in none of them.
func TestOneIDFollowsADeployment(t *testing.T) {
	const execution = "01JEXECUTION"
	h := start(t, agent.Account{Name: "one"}, redact.Config{})
	h.awaitLive(len(vedette.DefaultKinds))
	taskURI := h.deploy(execution, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"followed","namespace":"default",
		"annotations":{"strategy.spinnaker.io/versioned":"false"}},"data":{"a":"value-of-followed"}}`)
	h.await("the end of the task", func() bool {
		var task struct {
			Status struct{ Completed, Failed bool }
		}
		return h.get(taskURI, &task) && task.Status.Completed && !task.Status.Failed && strings.Contains(h.log.String(), `msg="task ended"`)
	})
	var lines string
	for _, want := range []string{
		`msg="REST request" program=server .*path=/kubernetes/ops status=200`,
		`msg="task started" program=server`,
		`msg="sending operation" program=server .*verb=apply .*agent=a1`,
		`msg="request to the API server" program=agent .*method=(POST|PATCH) path=/api/v1/namespaces/default/configmaps.* status=20`,
		`msg="operation ended" program=agent .*verb=apply state=done`,
		`msg="operation ended" program=server .*state=done`,
		`msg="task ended" program=server .*state=succeeded`,
	} {
		h.await("a line with the id that matches "+want, func() bool {
			lines = linesWith(h.log.String(), "request="+execution)
			return regexp.MustCompile(want).MatchString(lines)
		})
	}
	sent := regexp.MustCompile(`msg="sending operation".* operation=(\S+) .*verb=apply`).FindStringSubmatch(lines)
	if sent == nil || !regexp.MustCompile(`msg="request to the API server".* operation=`+sent[1]).MatchString(lines) {
		t.Errorf("the requests to the API server do not name the operation %q", sent)
	}
	if strings.Contains(h.log.String(), "value-of-followed") {
		t.Error("the logs contain the data of the object")
	}
}

// deploy submits the deployment of a manifest, and returns the path of its task.
func (h *stack) deploy(execution, manifest string) (taskURI string) {
	h.t.Helper()
	body := `[{"deployManifest":{"account":"one","moniker":{"app":"web"},"manifests":[` + manifest + `]}}]`
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://"+h.srv.REST().String()+"/kubernetes/ops", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-SPINNAKER-EXECUTION-ID", execution)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	var task struct{ ResourceURI string }
	if err := json.NewDecoder(response.Body).Decode(&task); err != nil || response.StatusCode != http.StatusOK {
		h.t.Fatalf("got status %d, %v", response.StatusCode, err)
	}
	if got := response.Header.Get("X-Request-Id"); got != execution {
		h.t.Errorf("got X-Request-Id %q in the response, want %q", got, execution)
	}
	return task.ResourceURI
}

func linesWith(log, text string) string {
	var found strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found.WriteString(line)
		}
	}
	return found.String()
}
