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

// displayName is how people call the object, as long as the cluster has not.
func (d document) displayName() string {
	kind := strings.ToLower(d.Kind)
	if group, _, found := strings.Cut(d.APIVersion, "/"); found {
		kind += "." + group
	}
	return kind + "/" + orDefault(d.Metadata.Name, d.Metadata.GenerateName)
}

// fileOptions are the flags that name files.
type fileOptions struct {
	files     []string
	recursive bool
	namespace string
	selector  string
}

// loadResult are the objects of files, and what of the files can't be used. That keeps the
// rest from nothing, as with kubectl.
type loadResult struct {
	documents  []document
	loadErrors []error
}

func (l *loadResult) add(other loadResult) {
	l.documents, l.loadErrors = append(l.documents, other.documents...), append(l.loadErrors, other.loadErrors...)
}

// load reads all objects of the files, in the order in which they stand there. It fails
// where there is none.
func (d fileOptions) load(stdin io.Reader) (loadResult, error) {
	labelSelector, err := labels.Parse(d.selector)
	if err != nil {
		return loadResult{}, vedette.Errorf(vedette.Invalid, "the label selector %q cannot be read: %w", d.selector, err)
	}
	var all loadResult
	for _, name := range d.files {
		found, err := d.loadFrom(name, stdin)
		if err != nil {
			return loadResult{}, err
		}
		all.add(found)
	}
	all.documents = slices.DeleteFunc(all.documents, func(o document) bool { return !labelSelector.Matches(labels.Set(o.Metadata.Labels)) })
	all.setNamespace(d.namespace)
	switch {
	case len(all.documents) > 0:
		return all, nil
	case len(all.loadErrors) > 0:
		return loadResult{}, errors.Join(all.loadErrors...)
	}
	return loadResult{}, vedette.Errorf(vedette.Invalid, "no objects were found in %s", strings.Join(d.files, ", "))
}

// setNamespace puts the objects that name no namespace into the one of the flag.
func (l *loadResult) setNamespace(namespace string) {
	var placed []document
	for _, d := range l.documents {
		if err := d.setNamespace(namespace); err != nil {
			l.loadErrors = append(l.loadErrors, err)
		} else {
			placed = append(placed, d)
		}
	}
	l.documents = placed
}

// setNamespace puts an object that names no namespace into the one of the flag.
func (d *document) setNamespace(namespace string) error {
	own := d.Metadata.Namespace
	if own != "" && namespace != "" && own != namespace {
		return vedette.Errorf(vedette.Invalid, "%s: the namespace of %s is %q and does not match the namespace %q: leave -n out, or write --namespace=%s",
			d.source, d.displayName(), own, namespace, own)
	}
	d.Metadata.Namespace = orDefault(own, namespace)
	return nil
}

func (d fileOptions) loadFrom(name string, stdin io.Reader) (loadResult, error) {
	if name == "-" {
		return readDocuments(stdin, "stdin"), nil
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return loadResult{}, vedette.Errorf(vedette.Invalid, "%s is not fetched: write `curl -sSL %s | vedette … -f -`", name, name)
	}
	paths, err := d.paths(name)
	if err != nil {
		return loadResult{}, err
	}
	var all loadResult
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return loadResult{}, fmt.Errorf("read manifests: %w", err)
		}
		all.add(readDocuments(file, path))
		file.Close()
	}
	return all, nil
}

// paths returns the files of a folder by name, or the file itself.
func (d fileOptions) paths(name string) ([]string, error) {
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

// readDocuments takes a stream of YAML or JSON documents apart. A document of YAML that
// is broken ends at the next ---; what comes after broken JSON can't be told apart.
func readDocuments(r io.Reader, source string) loadResult {
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	var all loadResult
	broken := false // in another way than YAML is
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		var yamlErr yaml.YAMLSyntaxError
		switch {
		case errors.Is(err, io.EOF), err != nil && broken && !errors.As(err, &yamlErr):
			return all
		case err != nil:
			broken = broken || !errors.As(err, &yamlErr)
			all.loadErrors = append(all.loadErrors, vedette.Errorf(vedette.Invalid, "%s: document %d cannot be read: %w", source, n, err))
			continue
		}
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
			continue
		}
		all.flatten(raw, fmt.Sprintf("%s: document %d", source, n), document{source: source})
	}
}

// flatten adds an object, or those of a list. One of a list that does not say its kind
// has the kind that the list is for.
func (l *loadResult) flatten(raw json.RawMessage, location string, list document) {
	d := document{raw: raw, source: list.source}
	if err := json.Unmarshal(raw, &d); err != nil {
		l.loadErrors = append(l.loadErrors, vedette.Errorf(vedette.Invalid, "%s: it is no object of Kubernetes: %w", location, err))
		return
	}
	d.inheritKind(list)
	var items struct{ Items []json.RawMessage }
	if !strings.HasSuffix(d.Kind, "List") || json.Unmarshal(raw, &items) != nil || items.Items == nil && d.Kind != "List" {
		if err := d.validate(); err != nil {
			l.loadErrors = append(l.loadErrors, vedette.Errorf(vedette.Invalid, "%s: %w", location, err))
			return
		}
		l.documents = append(l.documents, d)
		return
	}
	for _, item := range items.Items {
		l.flatten(item, location, d)
	}
}

// inheritKind takes the kind that a list is for, as of ConfigMapList.
func (d *document) inheritKind(list document) {
	kind := strings.TrimSuffix(list.Kind, "List")
	if d.Kind != "" || d.APIVersion != "" || kind == "" {
		return
	}
	tree, err := decodeManifest(d.raw)
	if err != nil || tree == nil {
		return // what is wrong with it will be told
	}
	tree["kind"], tree["apiVersion"] = kind, list.APIVersion
	if raw, err := json.Marshal(tree); err == nil {
		d.raw, d.Kind, d.APIVersion = raw, kind, list.APIVersion
	}
}

func (d document) validate() error {
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

// operation is an operation on the object that a document names.
func (d document) operation(verb vedette.Verb) client.Operation {
	return client.Operation{Args: vedette.TargetArgs(verb, vedette.Target{Kind: d.Kind, APIVersion: d.APIVersion, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name})}
}
