package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var metric = regexp.MustCompile(`\bvedette_(?:agent|server)_\w+`)

// TestMetricsExist checks that the metrics exist that the pages name.
func TestMetricsExist(t *testing.T) {
	all, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*page{troubleshooting, withoutKubernetes} {
		for _, name := range metric.FindAllString(p.read(t), -1) {
			if !strings.Contains(string(all), "`"+name+"`") {
				t.Errorf("%s names the metric %s, which does not exist", p.path, name)
			}
		}
	}
}
