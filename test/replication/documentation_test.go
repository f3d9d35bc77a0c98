package replication_test

import (
	"os"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/databases"
)

// TestDocumentedSettingsAreTested compares the settings that docs/scaling.md shows with those of these tests. Only addresses, paths,
// users and times differ.
func TestDocumentedSettingsAreTested(t *testing.T) {
	text, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, setting := range databases.DocumentedSettings() {
		if !strings.Contains(page, strings.Join(strings.Fields(setting), " ")) {
			t.Errorf("docs/scaling.md does not have %q, with which the tests run", setting)
		}
	}
}
