package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	agent "github.com/vedette-io/vedette/agent/config"
)

// anyAuthority replaces the abbreviated certificates of the pages. It is a block of PEM in base64.
const anyAuthority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmUwPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="

// TestValuesOfCloudsAreValid checks the chart's values on the page of each cloud: that the chart has them, and that the agent takes the
// configuration in them and then gets the tokens of that cloud.
func TestValuesOfCloudsAreValid(t *testing.T) {
	chart, err := os.ReadFile(filepath.Join("..", "deploy", "helm", "vedette", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var known struct {
		Agent map[string]any `json:"agent"`
	}
	if err := yaml.Unmarshal(chart, &known); err != nil {
		t.Fatal(err)
	}
	for _, cloud := range []string{"eks", "gke", "aks"} {
		page, err := os.ReadFile("cloud-" + cloud + ".md")
		if err != nil {
			t.Fatal(err)
		}
		examples := 0
		for _, m := range example.FindAllStringSubmatch(string(page), -1) {
			if m[1] != "values.yaml" {
				continue
			}
			examples++
			var values struct {
				Agent map[string]any `json:"agent"`
			}
			if err := yaml.UnmarshalStrict([]byte(m[2]), &values); err != nil {
				t.Fatal(err)
			}
			for key := range values.Agent {
				if _, ok := known.Agent[key]; !ok {
					t.Errorf("%s: the chart has no agent.%s", cloud, key)
				}
			}
			config, err := yaml.Marshal(values.Agent["config"])
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(config), "LS0tLS1CRUdJTi…", anyAuthority)
			c, err := agent.Load(writeTempFile(t, "armory-agent.yml", text), lookupEnv)
			if err != nil || len(c.RejectedAccounts) > 0 || len(c.Kubernetes.Accounts) != 1 || c.Kubernetes.Accounts[0].Cloud.Provider != cloud {
				t.Errorf("%s: %v, %+v in\n%s", cloud, err, c, text)
			}
		}
		if examples == 0 {
			t.Errorf("%s: the page has no values", cloud)
		}
	}
}
