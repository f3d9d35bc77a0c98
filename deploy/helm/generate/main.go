// Generate writes what the chart repeats of other places: values.schema.json and README.md, from the comments of values.yaml and
// from the programs' configurations, files/alerts.yml, and files/formerly.yaml, from the table of the command that converts. Run
// it with go generate ./deploy/helm/generate.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vedette-io/vedette/internal/formerchart"
)

//go:generate go run . --chart ../vedette

func main() {
	if len(os.Args) != 3 || os.Args[1] != "--chart" {
		fmt.Fprintln(os.Stderr, "usage: generate --chart DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(chart string) error {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	values, err := parse(text)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	former := formerchart.Values()
	var schema bytes.Buffer
	encoder := json.NewEncoder(&schema)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(rootSchema(values, former)); err != nil {
		return err
	}
	alerts, err := os.ReadFile(filepath.Join(chart, "..", "..", "prometheus", "alerts.yml"))
	if err != nil {
		return err
	}
	written := map[string][]byte{"values.schema.json": schema.Bytes(), "README.md": readme(values), "files/alerts.yml": alerts,
		"files/formerly.yaml": formerly(former)}
	for name, content := range written {
		if err := os.WriteFile(filepath.Join(chart, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// formerly returns what the chart says about values of the predecessor's chart.
func formerly(values []formerchart.Value) []byte {
	var b bytes.Buffer
	b.WriteString("# Values of the predecessor's chart, agent-k8s-full, and what to set instead. They are errors that say so.\n")
	b.WriteString("# Generated from internal/formerchart by go generate ./deploy/helm/generate.\n")
	for _, v := range values {
		fmt.Fprintf(&b, "%s: %q\n", v.Path, v.Now)
	}
	return b.Bytes()
}
