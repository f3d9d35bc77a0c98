package logthrottle

import (
	"log/slog"
	"sync"
	"time"
)

// maxSources is how many sources are throttled separately. Further ones share a logger.
const maxSources = 1000

// Sources throttles the lines of each source of a log, as Logger does, so that one of them hides no lines of the
// others. A source is what a client cannot multiply, such as its address.
type Sources struct {
	log *slog.Logger

	mu       sync.Mutex
	bySource map[string]*source
}

type source struct {
	log  *slog.Logger
	used time.Time // when its logger was last asked for
}

// NewSources returns throttled loggers that write to log.
func NewSources(log *slog.Logger) *Sources {
	return &Sources{log: log, bySource: map[string]*source{}}
}

// Logger returns the logger of a source.
func (s *Sources) Logger(name string) *slog.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.bySource[name] == nil && len(s.bySource) >= maxSources {
		s.forgetLocked(now)
	}
	if s.bySource[name] == nil && len(s.bySource) >= maxSources {
		name = ""
	}
	found := s.bySource[name]
	if found == nil {
		found = &source{log: Logger(s.log)}
		s.bySource[name] = found
	}
	found.used = now
	return found.log
}

// forgetLocked forgets sources that were silent for a window.
func (s *Sources) forgetLocked(now time.Time) {
	for name, each := range s.bySource {
		if now.Sub(each.used) >= window {
			delete(s.bySource, name)
		}
	}
}
