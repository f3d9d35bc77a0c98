// Package manifests reads Kubernetes manifests from files, and writes objects as JSON or YAML.
package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// Document is one object in a file.
type Document struct {
	Raw        json.RawMessage
	Source     string // path of the file, or "stdin"
	APIVersion string
	Kind       string
	Metadata   struct {
		Name, GenerateName, Namespace string
		Labels, Annotations           map[string]string
	}
	// Account is the account that output of vedette names beside the object; empty if it names none.
	Account string `json:"-"`
}

// DisplayName returns "kind.group/name" as the file has it. Only the cluster knows the full
// name of the kind.
func (d Document) DisplayName() string {
	kind := strings.ToLower(d.Kind)
	if group, _, found := strings.Cut(d.APIVersion, "/"); found {
		kind += "." + group
	}
	return kind + "/" + cmp.Or(d.Metadata.Name, d.Metadata.GenerateName)
}

// CheckName returns an error if the document does not name an object.
func (d Document) CheckName() error {
	if d.Metadata.Name != "" {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "%s: %s has no metadata.name, and generateName works only with `vedette create`: set metadata.name",
		d.Source, d.DisplayName())
}

// Options are the flags for manifest files.
type Options struct {
	Files     []string
	recursive bool
	Namespace string
	Selector  string
}

// AddFlags adds the flags of commands that take files.
func (d *Options) AddFlags(cmd *cobra.Command) {
	d.AddFileFlags(cmd)
	cmd.Flags().StringVarP(&d.Namespace, "namespace", "n", "", "Namespace of objects that do not name one. Defaults to the namespace of the context, then to default.")
}

// AddFileFlags adds the flags for the files only, for commands whose other flags are their own.
func (d *Options) AddFileFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&d.Files, "filename", "f", nil, "Files or directories that contain manifests; - for the standard input.")
	cmd.Flags().BoolVarP(&d.recursive, "recursive", "R", false, "Process the directories in -f recursively.")
}

// LoadResult has the objects in files, and the errors of documents that cannot be used. As
// with kubectl, an invalid document does not prevent the others from being applied.
type LoadResult struct {
	Documents  []Document
	LoadErrors []error
}

func (l *LoadResult) add(other LoadResult) {
	l.Documents, l.LoadErrors = append(l.Documents, other.Documents...), append(l.LoadErrors, other.LoadErrors...)
}

// Load reads all objects in the files, in the order of the files. It fails if there are none.
func (d Options) Load(stdin io.Reader) (LoadResult, error) {
	labelSelector, err := labels.Parse(d.Selector)
	if err != nil {
		return LoadResult{}, vedette.Errorf(vedette.Invalid, "invalid label selector %q: %w", d.Selector, err)
	}
	var all LoadResult
	for _, name := range d.Files {
		found, err := d.loadFrom(name, stdin)
		if err != nil {
			return LoadResult{}, err
		}
		all.add(found)
	}
	all.Documents = slices.DeleteFunc(all.Documents, func(o Document) bool { return !labelSelector.Matches(labels.Set(o.Metadata.Labels)) })
	all.setNamespace(d.Namespace)
	switch {
	case len(all.Documents) > 0:
		return all, nil
	case len(all.LoadErrors) > 0:
		return LoadResult{}, errors.Join(all.LoadErrors...)
	}
	return LoadResult{}, vedette.Errorf(vedette.Invalid, "no objects found in %s", strings.Join(d.Files, ", "))
}

// setNamespace sets the namespace of the objects that do not have one.
func (l *LoadResult) setNamespace(namespace string) {
	var placed []Document
	for _, d := range l.Documents {
		if err := d.setNamespace(namespace); err != nil {
			l.LoadErrors = append(l.LoadErrors, err)
		} else {
			placed = append(placed, d)
		}
	}
	l.Documents = placed
}

// setNamespace sets the namespace of an object that does not have one.
func (d *Document) setNamespace(namespace string) error {
	own := d.Metadata.Namespace
	if own != "" && namespace != "" && own != namespace {
		return vedette.Errorf(vedette.Invalid,
			"%s: the namespace of %s is %q, which does not match the namespace %q: remove -n, or use --namespace=%s",
			d.Source, d.DisplayName(), own, namespace, own)
	}
	d.Metadata.Namespace = cmp.Or(own, namespace)
	return nil
}

func (d Options) loadFrom(name string, stdin io.Reader) (LoadResult, error) {
	if name == "-" {
		return readDocuments(stdin, "stdin"), nil
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return LoadResult{}, vedette.Errorf(vedette.Invalid, "-f does not accept URLs: use `curl -sSL %s | vedette … -f -`", client.WithoutLogin(name))
	}
	paths, err := d.paths(name)
	if err != nil {
		return LoadResult{}, err
	}
	var all LoadResult
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return LoadResult{}, fmt.Errorf("read manifests: %w", err)
		}
		all.add(readDocuments(file, path))
		file.Close()
	}
	return all, nil
}

// paths returns the manifest files in a directory in lexical order, or the file itself.
func (d Options) paths(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, vedette.Errorf(vedette.NotFound, "the path %q does not exist", name)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var paths []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !d.recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)):
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the directory %s: %w", name, err)
	}
	if len(paths) == 0 {
		return nil, vedette.Errorf(vedette.NotFound, "the directory %s has no files that end in .yaml, .yml or .json%s", name,
			map[bool]string{false: "; use -R to process its subdirectories"}[d.recursive])
	}
	return paths, nil
}

// readDocuments splits a stream of YAML or JSON documents. After an invalid YAML document it
// continues at the next "---"; after invalid JSON it stops, because it cannot find the next
// document.
func readDocuments(r io.Reader, source string) LoadResult {
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	var all LoadResult
	broken := false // a document was invalid, and not by its YAML syntax
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		var yamlErr yaml.YAMLSyntaxError
		switch {
		case errors.Is(err, io.EOF), err != nil && broken && !errors.As(err, &yamlErr):
			return all
		case err != nil:
			broken = broken || !errors.As(err, &yamlErr)
			all.LoadErrors = append(all.LoadErrors, vedette.Errorf(vedette.Invalid, "%s: document %d is invalid: %w", source, n, err))
			continue
		}
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		all.flatten(raw, fmt.Sprintf("%s: document %d", source, n), Document{Source: source})
	}
}

// flatten adds an object, or the objects of a list. An object without a kind in a list has
// the kind of the list's items.
func (l *LoadResult) flatten(raw json.RawMessage, location string, list Document) {
	d := Document{Raw: raw, Source: list.Source}
	if err := json.Unmarshal(raw, &d); err != nil {
		l.LoadErrors = append(l.LoadErrors, vedette.Errorf(vedette.Invalid, "%s: not a Kubernetes object: %w", location, err))
		return
	}
	d.inheritKind(list)
	var items struct{ Items []json.RawMessage }
	if !strings.HasSuffix(d.Kind, "List") || json.Unmarshal(raw, &items) != nil || items.Items == nil && d.Kind != "List" {
		if err := d.validate(); err != nil {
			l.LoadErrors = append(l.LoadErrors, vedette.Errorf(vedette.Invalid, "%s: %w", location, err))
			return
		}
		if err := d.takeAccount(); err != nil {
			l.LoadErrors = append(l.LoadErrors, vedette.Errorf(vedette.Invalid, "%s: %w", location, err))
			return
		}
		l.Documents = append(l.Documents, d)
		return
	}
	for _, item := range items.Items {
		l.flatten(item, location, d)
	}
}

// inheritKind sets the kind of an object in a list such as ConfigMapList.
func (d *Document) inheritKind(list Document) {
	kind := strings.TrimSuffix(list.Kind, "List")
	if d.Kind != "" || d.APIVersion != "" || kind == "" {
		return
	}
	tree, err := Decode(d.Raw)
	if err != nil || tree == nil {
		return // validate returns the error
	}
	tree["kind"], tree["apiVersion"] = kind, list.APIVersion
	if raw, err := json.Marshal(tree); err == nil {
		d.Raw = raw
		d.Kind = kind
		d.APIVersion = list.APIVersion
	}
}

func (d Document) validate() error {
	switch {
	case d.Kind == "":
		return errors.New("kind is missing")
	case d.APIVersion == "":
		return fmt.Errorf("apiVersion of the %s is missing", d.Kind)
	case d.Metadata.Name == "" && d.Metadata.GenerateName == "":
		return fmt.Errorf("metadata.name of the %s is missing", d.Kind)
	}
	return nil
}

// Operation returns an operation on the object of a document, of a verb that takes only a
// target.
func (d Document) Operation(verb vedette.Verb) client.Operation {
	return client.Operation{Args: vedette.TargetArgs(verb,
		vedette.Target{Kind: d.Kind, APIVersion: d.APIVersion, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name})}
}
