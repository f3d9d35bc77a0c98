package secret

import (
	"context"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// Load resolves the references of one configuration. It limits the total time that it waits for engines that do not
// answer.
type Load struct {
	resolver *Resolver
	ctx      context.Context
	budget   *retryBudget
	refresh  bool // documents of earlier loads do not count

	mu      sync.Mutex
	results map[string]result // by the text of the reference
	down    map[string]error  // engines that did not answer, by name
	fetched map[string]bool   // documents that this load has fetched, by key
}

type result struct {
	text string
	err  error
}

// Load begins to resolve the references of a configuration. Documents that were fetched before are
// not fetched again. From now on, Refresh retries only references that this configuration could not resolve.
func (r *Resolver) Load(ctx context.Context) *Load {
	r.mu.Lock()
	clear(r.missing)
	r.mu.Unlock()
	return r.load(ctx, false)
}

func (r *Resolver) load(ctx context.Context, refresh bool) *Load {
	return &Load{resolver: r, ctx: ctx, budget: r.timing.start(), refresh: refresh, results: map[string]result{},
		down: map[string]error{}, fetched: map[string]bool{}}
}

// fetchesPerEngine is the number of documents that are fetched from one engine at the same time.
const fetchesPerEngine = 8

// Prefetch resolves references concurrently, so that Resolve returns at once. An engine that does
// not answer does not delay the others.
func (l *Load) Prefetch(references []string) {
	byEngine := map[string]chan string{}
	references = slices.Compact(slices.Sorted(slices.Values(references)))
	var workers sync.WaitGroup
	for _, text := range references {
		ref, err := Parse(text)
		if err != nil {
			continue // Resolve reports it
		}
		queue, ok := byEngine[ref.Engine]
		if !ok {
			queue = make(chan string, len(references))
			byEngine[ref.Engine] = queue
			for range fetchesPerEngine {
				workers.Go(func() {
					for text := range queue {
						_, _ = l.Resolve(text) // the error is kept for the next call
					}
				})
			}
		}
		queue <- text
	}
	for _, queue := range byEngine {
		close(queue)
	}
	workers.Wait()
}

// Resolve returns the secret that a reference names, or the path of the file with it. Its error names
// the reference.
func (l *Load) Resolve(text string) (string, error) {
	l.mu.Lock()
	done, ok := l.results[text]
	l.mu.Unlock()
	if !ok {
		done.text, done.err = l.resolve(text)
		l.mu.Lock()
		l.results[text] = done
		l.mu.Unlock()
	}
	return done.text, done.err
}

func (l *Load) resolve(text string) (string, error) {
	at, err := l.resolver.locate(text)
	if err != nil {
		return "", err
	}
	secret, err := l.fetch(at)
	if err != nil {
		l.resolver.markMissing(text)
	}
	return secret, err
}

func (l *Load) fetch(at located) (string, error) {
	document, err := l.document(at)
	if err != nil {
		return "", named(at.Reference, err)
	}
	return l.resolver.finish(at, document)
}

func (l *Load) document(at located) ([]byte, error) {
	l.mu.Lock()
	down, mayKeep := l.down[at.Engine], !l.refresh || l.fetched[at.key()]
	l.mu.Unlock()
	if mayKeep {
		if document, ok := l.resolver.kept(at.key()); ok {
			return document, nil
		}
	}
	if down != nil {
		return nil, down
	}
	document, err := l.resolver.fetchOnce(l.ctx, at, l.budget)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.fetched[at.key()] = true
	case vedette.KindOf(err) == vedette.Unavailable:
		l.down[at.Engine] = err
	}
	return document, err
}

// Keep forgets the secrets of other loads, and removes their files. Call it when the configuration
// is in effect.
func (l *Load) Keep() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	used, documents := map[string]bool{}, map[string]bool{}
	for text := range l.results {
		used[text] = true
		if at, err := l.resolver.locate(text); err == nil {
			documents[at.key()] = true
		}
	}
	return l.resolver.forgetOthers(used, documents)
}

// forgetOthers keeps only some references and some documents.
func (r *Resolver) forgetOthers(used, documents map[string]bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for text := range r.secrets {
		if !used[text] {
			delete(r.secrets, text)
		}
	}
	for key := range r.documents {
		if !documents[key] {
			delete(r.documents, key)
		}
	}
	return r.files.removeOthers(used)
}
