package engines

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
)

// Loader resolves the references of one configuration. Nothing is fetched for a configuration without
// references.
type Loader struct {
	options configfile.Options
	read    func(o configfile.Options, into any)
	timing  secret.Timing
	before  *Loader // nil if there was none

	open      sync.Once
	settings  Settings
	bootstrap *secret.Resolver // for references within the section `secrets`
	resolver  *secret.Resolver
	borrowed  borrowed
	retired   []*secret.Resolver // of loaders before, whose files are still used
	load      *secret.Load
	failed    map[string]error // references within the section that cannot be resolved
}

// NewLoader returns a loader for a configuration that read reads, with options like o, into a struct.
// It calls read more than once. It removes the files with secrets of processes that were killed,
// because the configuration may have no such files anymore.
func NewLoader(o configfile.Options, read func(o configfile.Options, into any)) *Loader {
	secret.RemoveAbandoned()
	return &Loader{options: o, read: read}
}

// borrowed says what belongs to the loader before.
type borrowed struct{ bootstrap, resolver bool }

// Next returns a loader for a configuration that is read again. It uses the documents and the files
// that l has fetched, so that paths of files stay the same, unless the section `secrets` differs.
// Either Adopt or Close it.
func (l *Loader) Next(o configfile.Options, read func(o configfile.Options, into any)) *Loader {
	return &Loader{options: o, read: read, timing: l.timing, before: l}
}

// AdoptKeepingFiles is Adopt, but what the loader before has stays until the next Adopt or Close. It is
// for configurations of which parts are not in effect: those before stay in effect, with their files.
func (l *Loader) AdoptKeepingFiles() {
	before := l.before
	if before == nil {
		return
	}
	l.before = nil
	l.retired = append(l.retired, before.owned(l.borrowed)...)
	l.borrowed = borrowed{}
}

// owned returns the resolvers of l, and of loaders before it, that another loader has not borrowed.
func (l *Loader) owned(lent borrowed) []*secret.Resolver {
	all := l.retired
	if l.resolver != nil && !l.borrowed.resolver && !lent.resolver {
		all = append(all, l.resolver)
	}
	if l.bootstrap != nil && !l.borrowed.bootstrap && !lent.bootstrap {
		all = append(all, l.bootstrap)
	}
	return all
}

// Adopt closes what the loader before has and l does not use, and removes the files that the
// configuration does not refer to anymore. Do not resolve references with the loader before anymore.
func (l *Loader) Adopt() error {
	before := l.before
	if before == nil {
		return nil
	}
	l.before = nil
	errs := closeAll(before.owned(l.borrowed))
	l.borrowed = borrowed{}
	if l.load != nil {
		errs = append(errs, l.load.Keep())
	}
	return errors.Join(errs...)
}

// openBootstrap opens the resolver for the section `secrets`, or borrows that of the loader before.
func (l *Loader) openBootstrap() {
	if l.before != nil && l.before.bootstrap != nil {
		l.bootstrap, l.borrowed.bootstrap = l.before.bootstrap, true
		return
	}
	l.bootstrap = secret.New(l.bootstrapEngines(), l.timing)
}

// openMain opens the resolver for everything else, or borrows that of the loader before.
func (l *Loader) openMain() {
	if l.before != nil && l.before.resolver != nil && reflect.DeepEqual(l.before.settings, l.settings) {
		l.resolver, l.borrowed.resolver = l.before.resolver, true
		return
	}
	l.resolver = secret.New(withVault(withoutSettings(l.getenv), l.settings.Vault, l.getenv), l.timing)
}

// Prefetch finds the references in a configuration and fetches all of them at the same time. It reads the
// configuration into scratch, which is empty and of the same type. It returns whether it has found any:
// if not, what it has read is complete, otherwise it is worth nothing.
func (l *Loader) Prefetch(scratch any) bool {
	var references []string
	o := l.options
	o.Secrets = func(reference string) (string, error) {
		references = append(references, reference)
		return "", nil
	}
	l.read(o, scratch)
	if len(references) > 0 {
		l.open.Do(l.openResolver)
		l.load.Prefetch(references)
	}
	return len(references) > 0
}

// Resolve returns what replaces a reference.
func (l *Loader) Resolve(reference string) (string, error) {
	l.open.Do(l.openResolver)
	if err := l.failed[reference]; err != nil {
		return "", err
	}
	return l.load.Resolve(reference)
}

// openResolver reads the section `secrets`. Its own references may be of all engines but vault.
func (l *Loader) openResolver() {
	l.openBootstrap()
	bootstrap := l.bootstrap.Load(context.Background())
	var settings struct {
		Secrets Settings `config:"secrets"`
	}
	o := l.options
	l.failed = map[string]error{}
	o.Secrets = func(reference string) (string, error) {
		text, err := bootstrap.Resolve(reference)
		if err != nil {
			l.failed[reference] = err
		}
		return text, err
	}
	l.read(o, &settings)
	l.settings = settings.Secrets
	l.openMain()
	l.load = l.resolver.Load(context.Background())
}

func (l *Loader) bootstrapEngines() map[string]secret.Engine {
	engines := withoutSettings(l.getenv)
	engines["vault"] = unusable{"the settings of vault must not be references to vault itself"}
	return engines
}

func (l *Loader) getenv(name string) string {
	if l.options.Env == nil {
		return ""
	}
	value, _ := l.options.Env(name)
	return value
}

// Refresh fetches all secrets of the configuration again, and returns the references of those that have
// changed. Temporary files are replaced; for other values, read the configuration again.
func (l *Loader) Refresh(ctx context.Context) ([]string, error) {
	if l == nil || l.resolver == nil {
		return nil, nil
	}
	return l.resolver.Refresh(ctx)
}

// Close removes the temporary files and ends the sessions of engines.
func (l *Loader) Close() error {
	if l == nil {
		return nil
	}
	errs := closeAll(l.owned(borrowed{}))
	l.retired = nil
	return errors.Join(errs...)
}

// Values returns the secrets of the configuration, in any order.
func (l *Loader) Values() []string {
	var values []string
	for _, resolver := range append([]*secret.Resolver{l.bootstrap, l.resolver}, l.retired...) {
		if resolver != nil {
			values = append(values, resolver.Values()...)
		}
	}
	return values
}

func closeAll(resolvers []*secret.Resolver) (errs []error) {
	for _, r := range resolvers {
		errs = append(errs, r.Close())
	}
	return errs
}
