package docs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	server "github.com/vedette-io/vedette/server/config"
)

// TestSpinnakerExamplesAreValid loads the configuration of the server on the page, and checks that
// all examples for Spinnaker's services name the same address.
func TestSpinnakerExamplesAreValid(t *testing.T) {
	text, err := os.ReadFile("spinnaker.md")
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if strings.HasPrefix(block, "# vedette-server.yml") {
			c, err := server.Load(writeTempFile(t, "vedette-server.yml", block), lookupEnv)
			if err != nil || len(c.Unused()) > 0 || c.Upstream.BaseURL == "" {
				t.Errorf("%v, without effect %q, in\n%s", err, c.Unused(), block)
			}
			continue
		}
		var document map[string]any
		if err := yaml.UnmarshalStrict([]byte(block), &document); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
		addresses = append(addresses, baseURLs(document)...)
	}
	if n := len(addresses); n != 4+1+8 {
		t.Errorf("got %d addresses, want those of four clients in Orca and of four other services, for Halyard and the Operator: %q", n, addresses)
	}
	if different := slices.Compact(slices.Sorted(slices.Values(addresses))); len(different) != 1 {
		t.Errorf("got the addresses %q, want one", different)
	}
}

// baseURLs returns the addresses of a document, wherever they are.
func baseURLs(value any) (found []string) {
	members, _ := value.(map[string]any)
	for name, member := range members {
		if text, ok := member.(string); ok && (name == "baseUrl" || strings.HasSuffix(name, ".baseUrl")) {
			found = append(found, text)
			continue
		}
		found = append(found, baseURLs(member)...)
	}
	return found
}
