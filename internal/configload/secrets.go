package configload

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/engines"
)

// secrets resolves the references of one configuration. It opens no engine for a configuration without references.
type secrets struct {
	getenv   func(name string) string
	timing   secret.Timing
	previous *secrets // of the configuration before, until this one is adopted; nil for none

	settings  engines.Settings
	bootstrap *sharedResolver   // for references within the group `secrets`
	resolver  *sharedResolver   // for all others
	retained  []*sharedResolver // of configurations before, whose files are still used
	load      *secret.Load
	failed    map[string]error // references within the group that cannot be resolved
	released  bool
}

// sharedResolver is a resolver of one configuration or of several that follow each other: the documents and the paths of
// files stay the same while the group `secrets` does. It is closed when the last of them releases it.
type sharedResolver struct {
	*secret.Resolver
	references int
}

func newSharedResolver(all map[string]secret.Engine, t secret.Timing) *sharedResolver {
	return &sharedResolver{secret.New(all, t), 1}
}

func (r *sharedResolver) acquire() *sharedResolver {
	r.references++
	return r
}

func (r *sharedResolver) release() error {
	r.references--
	if r.references > 0 {
		return nil
	}
	return r.Close()
}

// resolvers returns those that s has acquired.
func (s *secrets) resolvers() []*sharedResolver {
	all := append([]*sharedResolver{s.bootstrap, s.resolver}, s.retained...)
	return slices.DeleteFunc(all, func(r *sharedResolver) bool { return r == nil })
}

// release releases the resolvers. A refresh that is under way goes on, and writes nothing anymore.
func (s *secrets) release() error {
	if s.released {
		return nil
	}
	s.released = true
	var errs []error
	for _, r := range s.resolvers() {
		errs = append(errs, r.release())
	}
	return errors.Join(errs...)
}

// adopt makes s the successor of the secrets before, which must not be used anymore, and removes the files to which the
// configuration does not refer anymore.
func (s *secrets) adopt() error {
	previous := s.previous
	if previous == nil {
		return nil
	}
	s.previous = nil
	err := previous.release()
	if s.load != nil {
		err = errors.Join(err, s.load.Keep())
	}
	return err
}

// adoptRetaining is adopt for a configuration of which parts are not in effect: those before stay in effect, with their files,
// until the next adopt or release.
func (s *secrets) adoptRetaining() error {
	previous := s.previous
	if previous == nil {
		return nil
	}
	s.previous = nil
	var errs []error
	for _, r := range previous.resolvers() {
		if slices.Contains(s.resolvers(), r) {
			errs = append(errs, r.release())
		} else {
			s.retained = append(s.retained, r)
		}
	}
	return errors.Join(errs...)
}

// open decodes the group `secrets` and opens its engines, or takes those of the configuration before. References within the
// group may be of all engines but vault.
func (s *secrets) open(content *configfile.Content) {
	previous := s.previous
	if previous == nil {
		previous = &secrets{}
	}
	if previous.bootstrap != nil {
		s.bootstrap = previous.bootstrap.acquire()
	} else {
		s.bootstrap = newSharedResolver(engines.Bootstrap(s.getenv), s.timing)
	}
	bootstrap := s.bootstrap.Load(context.Background())
	var group struct {
		Secrets engines.Settings `config:"secrets"`
	}
	s.failed = map[string]error{}
	content.Decode(&group, func(reference string) (string, error) {
		text, err := bootstrap.Resolve(reference)
		if err != nil {
			s.failed[reference] = err
		}
		return text, err
	})
	s.settings = group.Secrets
	if previous.resolver != nil && reflect.DeepEqual(previous.settings, s.settings) {
		s.resolver = previous.resolver.acquire()
	} else {
		s.resolver = newSharedResolver(engines.All(s.settings, s.getenv), s.timing)
	}
	s.load = s.resolver.Load(context.Background())
}

func (s *secrets) resolve(reference string) (string, error) {
	if err := s.failed[reference]; err != nil {
		return "", err
	}
	return s.load.Resolve(reference)
}

// refresh fetches all secrets again, and returns the references of those that have changed.
func (s *secrets) refresh(ctx context.Context) ([]string, error) {
	if s.resolver == nil {
		return nil, nil
	}
	return s.resolver.Refresh(ctx)
}

// values returns the secrets, in any order.
func (s *secrets) values() (values []string) {
	for _, r := range s.resolvers() {
		values = append(values, r.Values()...)
	}
	return values
}
