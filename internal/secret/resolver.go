package secret

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vedette-io/vedette"
)

// Resolver resolves references, and keeps the documents and the files that they need. Its methods
// may be called concurrently.
type Resolver struct {
	engines map[string]Engine
	timing  Timing
	files   *files

	mu        sync.Mutex
	documents map[string][]byte // by engine and document
	secrets   map[string]string // by the text of the reference
	missing   map[string]bool   // references that could not be resolved; Refresh tries them again
	fetching  map[string]*fetch // by engine and document
}

// New returns a resolver with engines by name. Files are created in the system's directory for
// temporary files, which TMPDIR names.
func New(engines map[string]Engine, timing Timing) *Resolver {
	return &Resolver{engines: engines, timing: timing.withDefaults(), files: &files{}, documents: map[string][]byte{},
		secrets: map[string]string{}, missing: map[string]bool{}, fetching: map[string]*fetch{}}
}

// Close removes the files and ends the sessions of engines.
func (r *Resolver) Close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.engines)) {
		if closer, ok := r.engines[name].(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(append(errs, r.files.removeAll())...)
}

// located is a reference, and where its secret is.
type located struct {
	Reference
	location Location
}

// key identifies the document.
func (l located) key() string { return l.Engine + "!" + l.location.Document }

func (r *Resolver) locate(text string) (located, error) {
	ref, err := Parse(text)
	if err != nil {
		return located{}, err
	}
	engine := r.engines[ref.Engine]
	if engine == nil {
		return located{}, vedette.Errorf(vedette.Invalid, "%s: there is no such engine: use one of %s", ref,
			strings.Join(slices.Sorted(maps.Keys(r.engines)), ", "))
	}
	location, err := engine.Locate(ref)
	if err != nil {
		return located{}, named(ref, err)
	}
	return located{ref, location}, nil
}

// named adds the reference to an error that does not name it yet.
func named(ref Reference, err error) error {
	if strings.HasPrefix(err.Error(), ref.String()) {
		return err
	}
	return vedette.Errorf(vedette.KindOf(err), "%s: %w", ref, err)
}

// finish selects the secret in a document, keeps it, and returns what replaces the reference.
func (r *Resolver) finish(l located, document []byte) (string, error) {
	text, err := l.location.Select(document)
	if err != nil {
		return "", named(l.Reference, err)
	}
	value := text
	if l.IsFile {
		value, err = r.files.write(l.text, text)
		if err != nil {
			return "", named(l.Reference, err)
		}
	}
	r.mu.Lock()
	r.secrets[l.text] = text
	delete(r.missing, l.text)
	r.mu.Unlock()
	return value, nil
}

// markMissing remembers a reference that could not be resolved, so that Refresh retries it. Otherwise, an account that needs
// it would stay invalid after the engine is back, until a file changes.
func (r *Resolver) markMissing(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, isKept := r.secrets[text]; !isKept {
		r.missing[text] = true
	}
}

// Refresh fetches all secrets again, tries those again that could not be fetched, and returns the references
// of those that have changed or were found, in order. Files are replaced at once. A secret that cannot be
// fetched stays as it is, and is in the error.
func (r *Resolver) Refresh(ctx context.Context) ([]string, error) {
	r.mu.Lock()
	before := maps.Clone(r.secrets)
	references := slices.Sorted(maps.Keys(before))
	references = append(references, slices.Sorted(maps.Keys(r.missing))...)
	r.mu.Unlock()
	l := r.load(ctx, true)
	l.Prefetch(references)
	var changed []string
	var errs []error
	for _, text := range references {
		if _, err := l.Resolve(text); err != nil {
			errs = append(errs, err)
			continue
		}
		r.mu.Lock()
		if old, isKnown := before[text]; !isKnown || r.secrets[text] != old {
			changed = append(changed, text)
		}
		r.mu.Unlock()
	}
	return changed, errors.Join(errs...)
}

// Values returns the secrets that are in use, in any order.
func (r *Resolver) Values() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.secrets))
}
