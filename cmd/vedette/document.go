package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// document is one object of a file.
type document struct {
	raw        json.RawMessage
	source     string // the file; "stdin"
	APIVersion string
	Kind       string
	Metadata   struct {
		Name, GenerateName, Namespace string
		Labels                        map[string]string
	}
}

// label is how people call the object, as long as the cluster has not.
func (d document) label() string {
	kind := strings.ToLower(d.Kind)
	if group, _, found := strings.Cut(d.APIVersion, "/"); found {
		kind += "." + group
	}
	return kind + "/" + or(d.Metadata.Name, d.Metadata.GenerateName)
}

// documents are the flags that name files.
type documents struct {
	files     []string
	recursive bool
	namespace string
	selector  string
}

// load reads all objects of the files, in the order in which they stand there.
func (d documents) load(stdin io.Reader) ([]document, error) {
	chosen, err := labels.Parse(d.selector)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the label selector %q cannot be read: %w", d.selector, err)
	}
	var all []document
	for _, name := range d.files {
		found, err := d.loadFrom(name, stdin)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	all = slices.DeleteFunc(all, func(o document) bool { return !chosen.Matches(labels.Set(o.Metadata.Labels)) })
	for i := range all {
		if err := all[i].place(d.namespace); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "no objects were found in %s", strings.Join(d.files, ", "))
	}
	return all, nil
}

// place puts an object that names no namespace into the one of the flag.
func (d *document) place(namespace string) error {
	own := d.Metadata.Namespace
	if own != "" && namespace != "" && own != namespace {
		return vedette.Errorf(vedette.Invalid, "%s: the namespace of %s is %q and does not match the namespace %q: leave -n out, or write --namespace=%s",
			d.source, d.label(), own, namespace, own)
	}
	d.Metadata.Namespace = or(own, namespace)
	return nil
}

func (d documents) loadFrom(name string, stdin io.Reader) ([]document, error) {
	if name == "-" {
		return readDocuments(stdin, "stdin")
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return nil, vedette.Errorf(vedette.Invalid, "%s is not fetched: write `curl -sSL %s | vedette … -f -`", name, name)
	}
	paths, err := d.paths(name)
	if err != nil {
		return nil, err
	}
	var all []document
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		found, err := readDocuments(file, path)
		file.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// paths returns the files of a folder by name, or the file itself.
func (d documents) paths(name string) ([]string, error) {
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
		return nil, fmt.Errorf("read the folder %s: %w", name, err)
	}
	if len(paths) == 0 {
		return nil, vedette.Errorf(vedette.NotFound, "the folder %s has no files that end in .yaml, .yml or .json%s", name, map[bool]string{false: "; -R looks into the folders below it"}[d.recursive])
	}
	return paths, nil
}

// readDocuments takes a stream of YAML or JSON documents apart.
func readDocuments(r io.Reader, source string) ([]document, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	var all []document
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "%s: document %d cannot be read: %w", source, n, err)
		}
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
			continue
		}
		found, err := flatten(raw, source)
		if err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "%s: document %d: %w", source, n, err)
		}
		all = append(all, found...)
	}
}

// flatten takes lists apart.
func flatten(raw json.RawMessage, source string) ([]document, error) {
	d := document{raw: raw, source: source}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("it is no object of Kubernetes: %w", err)
	}
	var list struct{ Items []json.RawMessage }
	if !strings.HasSuffix(d.Kind, "List") || json.Unmarshal(raw, &list) != nil || list.Items == nil && d.Kind != "List" {
		return []document{d}, d.check()
	}
	var all []document
	for _, item := range list.Items {
		found, err := flatten(item, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (d document) check() error {
	switch {
	case d.Kind == "":
		return errors.New("it has no kind")
	case d.APIVersion == "":
		return fmt.Errorf("the %s has no apiVersion", d.Kind)
	case d.Metadata.Name == "" && d.Metadata.GenerateName == "":
		return fmt.Errorf("the %s has no metadata.name", d.Kind)
	}
	return nil
}

// on is an operation on the object that a document names.
func (d document) on(verb vedette.Verb) client.Operation {
	return client.Operation{Verb: verb, Kind: d.Kind, APIVersion: d.APIVersion, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name}
}
