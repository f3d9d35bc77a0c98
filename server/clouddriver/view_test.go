package clouddriver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/readtest"
)

// viewKinds are the kinds that an account with views reports.
func viewKinds() []any {
	return []any{"pods", "replicasets", "deployments", "daemonsets", "statefulsets", "jobs", "cronjobs", "services", "ingresses", "networkpolicies"}
}

// viewWorld stores the objects of testdata/views.
func viewWorld(t testing.TB) *readtest.Fixture {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	w.Account("dev", viewKinds()...)
	w.Register(vedette.Account{Name: "managed", Properties: vedette.Properties{OnlySpinnakerManaged: true}}, viewKinds()...)
	text, err := os.ReadFile("testdata/views/objects.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var entry struct {
			Account  vedette.AccountName
			Manifest json.RawMessage
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		w.Put(entry.Account, string(entry.Manifest))
	}
	return w
}

// fakeProjects has the project "store".
type fakeProjects struct{}

func (fakeProjects) Project(_ context.Context, name string, _ http.Header) (front50.Project, error) {
	if name != "store" {
		return front50.Project{}, vedette.Errorf(vedette.NotFound, "Front50 does not have %s", name)
	}
	all, main, canary := "*", "main", "canary"
	return front50.Project{Name: "Store", Config: front50.ProjectConfig{Applications: []string{"shop", "zebra"}, Clusters: []front50.ProjectCluster{
		{Account: "prod", Stack: &all, Detail: &all},
		{Account: "dev", Stack: &main, Detail: &canary, Applications: []string{"zebra", "unlisted"}},
		{Account: "dev", Applications: []string{"zebra"}},
	}}}, nil
}

func (fakeProjects) SearchProjects(context.Context, url.Values, int, http.Header) ([]front50.Project, error) {
	return nil, nil
}

// TestViewsAnswerAsRecorded sends the requests in testdata/views/requests.txt, and compares status and body with
// answers.txt. Errors are shown by their message.
func TestViewsAnswerAsRecorded(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: viewWorld(t).Store, Projects: fakeProjects{}})
	file, err := os.Open("testdata/views/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got strings.Builder
	for lines := bufio.NewScanner(file); lines.Scan(); {
		path := lines.Text()
		if strings.HasPrefix(path, "#") {
			continue
		}
		response, body := get(t, server+path)
		var failure struct{ Message, Exception string }
		if response.StatusCode >= 400 && json.Unmarshal(body, &failure) == nil {
			body = []byte(failure.Exception[strings.LastIndex(failure.Exception, ".")+1:] + ": " + failure.Message)
		} else {
			body = []byte(indent(t, body))
		}
		fmt.Fprintf(&got, "%s\n%d %s\n\n", path, response.StatusCode, bytes.TrimSpace(body))
	}
	golden.Compare(t, "testdata/views/answers.txt", got.String())
}
