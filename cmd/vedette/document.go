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

// loaded are the objects of files, and what of the files can't be used. That keeps the
// rest from nothing, as with kubectl.
type loaded struct {
	documents []document
	unread    []error
}

func (l *loaded) add(other loaded) {
	l.documents, l.unread = append(l.documents, other.documents...), append(l.unread, other.unread...)
}

// load reads all objects of the files, in the order in which they stand there. It fails
// where there is none.
func (d documents) load(stdin io.Reader) (loaded, error) {
	chosen, err := labels.Parse(d.selector)
	if err != nil {
		return loaded{}, vedette.Errorf(vedette.Invalid, "the label selector %q cannot be read: %w", d.selector, err)
	}
	var all loaded
	for _, name := range d.files {
		found, err := d.loadFrom(name, stdin)
		if err != nil {
			return loaded{}, err
		}
		all.add(found)
	}
	all.documents = slices.DeleteFunc(all.documents, func(o document) bool { return !chosen.Matches(labels.Set(o.Metadata.Labels)) })
	all.place(d.namespace)
	switch {
	case len(all.documents) > 0:
		return all, nil
	case len(all.unread) > 0:
		return loaded{}, errors.Join(all.unread...)
	}
	return loaded{}, vedette.Errorf(vedette.Invalid, "no objects were found in %s", strings.Join(d.files, ", "))
}

// place puts the objects that name no namespace into the one of the flag.
func (l *loaded) place(namespace string) {
	var placed []document
	for _, d := range l.documents {
		if err := d.place(namespace); err != nil {
			l.unread = append(l.unread, err)
		} else {
			placed = append(placed, d)
		}
	}
	l.documents = placed
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

func (d documents) loadFrom(name string, stdin io.Reader) (loaded, error) {
	if name == "-" {
		return readDocuments(stdin, "stdin"), nil
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return loaded{}, vedette.Errorf(vedette.Invalid, "%s is not fetched: write `curl -sSL %s | vedette … -f -`", name, name)
	}
	paths, err := d.paths(name)
	if err != nil {
		return loaded{}, err
	}
	var all loaded
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return loaded{}, fmt.Errorf("read manifests: %w", err)
		}
		all.add(readDocuments(file, path))
		file.Close()
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

// readDocuments takes a stream of YAML or JSON documents apart. A document of YAML that
// is broken ends at the next ---; what comes after broken JSON can't be told apart.
func readDocuments(r io.Reader, source string) loaded {
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	var all loaded
	broken := false // in another way than YAML is
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		var inYAML yaml.YAMLSyntaxError
		switch {
		case errors.Is(err, io.EOF), err != nil && broken && !errors.As(err, &inYAML):
			return all
		case err != nil:
			broken = broken || !errors.As(err, &inYAML)
			all.unread = append(all.unread, vedette.Errorf(vedette.Invalid, "%s: document %d cannot be read: %w", source, n, err))
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
func (l *loaded) flatten(raw json.RawMessage, where string, list document) {
	d := document{raw: raw, source: list.source}
	if err := json.Unmarshal(raw, &d); err != nil {
		l.unread = append(l.unread, vedette.Errorf(vedette.Invalid, "%s: it is no object of Kubernetes: %w", where, err))
		return
	}
	d.completeFrom(list)
	var items struct{ Items []json.RawMessage }
	if !strings.HasSuffix(d.Kind, "List") || json.Unmarshal(raw, &items) != nil || items.Items == nil && d.Kind != "List" {
		if err := d.check(); err != nil {
			l.unread = append(l.unread, vedette.Errorf(vedette.Invalid, "%s: %w", where, err))
			return
		}
		l.documents = append(l.documents, d)
		return
	}
	for _, item := range items.Items {
		l.flatten(item, where, d)
	}
}

// completeFrom takes the kind that a list is for, as of ConfigMapList.
func (d *document) completeFrom(list document) {
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
