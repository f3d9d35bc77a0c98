package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	agent "github.com/vedette-io/vedette/agent/config"
	server "github.com/vedette-io/vedette/server/config"
)

var example = regexp.MustCompile("(?s)```yaml\n# ([\\w.-]+)\n(.*?)```")

// TestSecuringExamplesAreValid loads each configuration of the page. Together the
// server's leave no port open; what opens one is the example that says so.
func TestSecuringExamplesAreValid(t *testing.T) {
	text, err := os.ReadFile("securing.md")
	if err != nil {
		t.Fatal(err)
	}
	all := example.FindAllStringSubmatch(string(text), -1)
	if n := strings.Count(string(text), "```yaml"); n != len(all) {
		t.Errorf("%d examples, of which %d name their file", n, len(all))
	}
	var seen []string
	for _, m := range all {
		seen = append(seen, m[1])
		switch m[1] {
		case "vedette-server.yml":
			checkServer(t, m[2])
		case "armory-agent.yml":
			checkAgent(t, m[2])
		default:
			checkManifest(t, m[1], m[2])
		}
	}
	for _, want := range []string{"vedette-server.yml", "armory-agent.yml", "networkpolicy.yml", "clusterrole.yml"} {
		if !slices.Contains(seen, want) {
			t.Errorf("no example of %s", want)
		}
	}
}

func lookupEnv(name string) (string, bool) { return "hidden", name == "VEDETTE_DB_PASSWORD" }

func writeTempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func checkServer(t *testing.T, text string) {
	t.Helper()
	c, err := server.Load(writeTempFile(t, "vedette-server.yml", text), lookupEnv)
	if err != nil {
		t.Errorf("%v in\n%s", err, text)
		return
	}
	expectWarning := strings.Contains(text, "allowUnauthenticated: true")
	if (len(c.Warnings()) > 0) != expectWarning || len(c.Unused()) > 0 {
		t.Errorf("warnings %q, without effect %q, in\n%s", c.Warnings(), c.Unused(), text)
	}
}

func checkAgent(t *testing.T, text string) {
	t.Helper()
	c, err := agent.Load(writeTempFile(t, "armory-agent.yml", text), lookupEnv)
	if err != nil || len(c.RejectedAccounts) > 0 || len(c.Unused()) > 0 {
		t.Errorf("%v, %+v in\n%s", err, c, text)
		return
	}
	if c.Clouddriver.IsInsecure() {
		t.Errorf("the agent connects in plaintext:\n%s", text)
	}
}

func checkManifest(t *testing.T, name, text string) {
	t.Helper()
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if err := yaml.Unmarshal([]byte(text), &o); err != nil || o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
		t.Errorf("%s: %+v, %v", name, o, err)
	}
}
