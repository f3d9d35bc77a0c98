package compatibility_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/test/apistub"
	"github.com/vedette-io/vedette/test/compatibility"
)

const goldenFile = "testdata/answers.json"

// startInstallation starts a server and an agent of the objects in testdata.
func startInstallation(t *testing.T) *compare.Server {
	t.Helper()
	cluster, err := compatibility.ReadObjects("testdata/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	api := apistub.Start(cluster)
	t.Cleanup(api.Close)
	front50 := httptest.NewServer(compatibility.Front50Handler())
	t.Cleanup(front50.Close)
	in, err := compatibility.Start(t.Context(), compatibility.Config{Dir: t.TempDir(), Kubeconfig: api.Kubeconfig(), Accounts: compatibility.DefaultAccounts(), Front50: front50.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Stop()
		if t.Failed() {
			t.Log(in.Logs())
		}
	})
	server, err := compare.NewServer("vedette", in.URL(), compatibility.Header("tester"))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func readPaths(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			paths = append(paths, line)
		}
	}
	return paths
}

// isServed reports whether the server has the endpoint.
func isServed(a compare.Answer) bool {
	return !bytes.Contains(a.Body, []byte(`"message":"No handler found`))
}

func TestServerAnswersAsReviewed(t *testing.T) {
	server := startInstallation(t)
	t.Run("answers as reviewed", func(t *testing.T) { testAnswers(t, server) })
	t.Run("equals itself", func(t *testing.T) { testServerEqualsItself(t, server) })
}

// testAnswers compares what a server answers about the project's own objects with answers that were
// reviewed against Clouddriver's rules. -update writes them; review what changed.
func testAnswers(t *testing.T, server *compare.Server) {
	paths := readPaths(t)
	if golden.Updates() {
		writeGolden(t, server, paths)
	}
	want, err := compatibility.ReadAnswers(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	report, err := compare.Run(t.Context(), want, server, want.Paths, compare.Options{ShowValues: true})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		var text strings.Builder
		if err := report.Print(&text, true); err != nil {
			t.Fatal(err)
		}
		t.Errorf("answers changed; in what follows, clouddriver means %s:\n%s", goldenFile, text.String())
	}
	checkAllPathsHaveAnswers(t, server, paths, want.Paths)
}

// checkAllPathsHaveAnswers checks that the golden file has all paths, unless the server does not
// have their endpoint.
func checkAllPathsHaveAnswers(t *testing.T, server *compare.Server, paths, known []string) {
	for _, path := range paths {
		if slices.Contains(known, path) {
			continue
		}
		answer, err := server.Answer(t.Context(), path)
		if err != nil {
			t.Error(err)
		} else if isServed(answer) {
			t.Errorf("GET %s has no reviewed answer: run go test ./test/compatibility -update, and review it", path)
		}
	}
	for _, path := range known {
		if !slices.Contains(paths, path) {
			t.Errorf("GET %s is in %s, but not in testdata/paths.txt: run go test ./test/compatibility -update", path, goldenFile)
		}
	}
}

// writeGolden writes the answers, with sorted lists and without times of errors.
func writeGolden(t *testing.T, server *compare.Server, paths []string) {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	for _, path := range paths {
		answer, err := server.Answer(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if !isServed(answer) {
			continue
		}
		if answer.Body, err = compare.Canonical(answer); err != nil {
			t.Fatal(err)
		}
		if err := encoder.Encode(answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(goldenFile, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSecretsDoNotShow looks for the data of the Secret in all answers.
func TestSecretsDoNotShow(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(goldenFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, canary := range []string{"hunter2", "aHVudGVyMg"} {
		if bytes.Contains(text, []byte(canary)) {
			t.Errorf("%s contains the data of a Secret: %s", goldenFile, canary)
		}
	}
}

// testServerEqualsItself compares a server with itself, by what the comparison discovers there.
func testServerEqualsItself(t *testing.T, server *compare.Server) {
	inventory, err := compare.Discover(t.Context(), server, server, compare.Scope{}, 4)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(inventory.Accounts, " "); got != "dev locked prod" {
		t.Errorf("got accounts %s, want dev, locked and prod", got)
	}
	paths, omitted := inventory.Paths(0)
	if omitted != 0 || slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(p, "secret") }) {
		t.Errorf("got %d paths left out, and paths %v, want none left out and no Secrets", omitted, paths)
	}
	report, err := compare.Run(t.Context(), server, server, paths, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || report.Total != len(paths) {
		var text strings.Builder
		if err := report.Print(&text, true); err != nil {
			t.Fatal(err)
		}
		t.Errorf("got differences, want %d equal answers:\n%s", len(paths), text.String())
	}
}
