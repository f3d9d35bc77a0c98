package infrastructure

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/singleflight"
)

// CachedApplication is an application at one time, with answers that were made from it.
type CachedApplication struct {
	*Application
	reader   *Reader
	rows     *Rows // that it was built from
	state    atomic.Pointer[state]
	rowBytes int64 // estimated memory of the application
	// Rows are read many at a time, and none of them is released before all are. So rowBytes also
	// counts rows that others have replaced. It was wholeBytes when all rows were read.
	wholeBytes int64

	flights   singleflight.Group // of balancers
	encoding  singleflight.Group // of answers
	balancers atomic.Pointer[[]*LoadBalancer]

	mu          sync.Mutex
	answers     map[string]*Answer
	answerBytes int64
}

// state is the state of the store that an application shows.
type state struct {
	began    uint64 // when it was read, in the order of the reader
	versions versions
	settings *Settings
	mark     uint64 // of the store's list of changed objects
}

// addBytes counts the memory of rows that were read for the application.
func (s *CachedApplication) addBytes(used int64) {
	s.rowBytes += used
	if s.wholeBytes == 0 {
		s.rowBytes = max(s.rowBytes, s.rows.bytes())
		s.wholeBytes = s.rowBytes
	}
}

// isSparse reports whether so many rows have been replaced that reading all of them saves memory.
func (s *CachedApplication) isSparse() bool {
	const slack = 1 << 20
	return s.rowBytes > 2*s.wholeBytes+slack || s.rowBytes > largeBytes
}

// isCurrent reports whether the application would be the same if it were built now.
func (s *CachedApplication) isCurrent(settings *Settings) bool {
	current := s.state.Load()
	return current.versions.isCurrent(s.reader.cfg.Store) && current.settings.sameViewsOf(settings, current.versions.namespaces)
}

// Answer is an encoded answer. It is read-only, because requests share it.
type Answer struct {
	Body       []byte
	Compressed []byte // the body in gzip; nil if it is small
	Tag        uint64 // a hash of the body
}

// Bytes is the memory that the answer takes.
func (a *Answer) Bytes() int64 { return int64(len(a.Body) + len(a.Compressed)) }

// maxAnswers limits the answers of one application, whose keys callers choose.
const maxAnswers = 64

// Answer returns the answer of a key: the one that was made before, or else a new one, which is
// kept if the cache has memory for it. Callers with the same key must want the same answer.
// Concurrent calls with one key share one answer, and few answers are made at a time: callers who
// come together after a change would otherwise fill the memory with equal answers.
func (s *CachedApplication) Answer(key string, encode func() (*Answer, error)) (*Answer, error) {
	if answer := s.kept(key); answer != nil {
		return answer, nil
	}
	answer, err, _ := s.encoding.Do(key, func() (any, error) {
		if answer := s.kept(key); answer != nil { // it was made in between
			return answer, nil
		}
		return s.reader.encode(s, key, encode)
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the error of encode
	}
	return answer.(*Answer), nil
}

// encode makes and keeps an answer as soon as few others are being made.
func (r *Reader) encode(s *CachedApplication, key string, encode func() (*Answer, error)) (*Answer, error) {
	r.encoding <- struct{}{}
	defer func() { <-r.encoding }()
	answer, err := encode()
	if err != nil {
		return nil, err
	}
	s.keep(key, answer)
	return answer, nil
}

func (s *CachedApplication) kept(key string) *Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[key]
}

func (s *CachedApplication) keep(key string, answer *Answer) {
	s.mu.Lock()
	size := int64(len(key)) + answer.Bytes()
	grown := size
	if s.answers == nil || len(s.answers) >= maxAnswers {
		grown -= s.answerBytes
		s.answers, s.answerBytes = map[string]*Answer{}, 0
	}
	s.answers[key] = answer
	s.answerBytes += size
	s.mu.Unlock()
	s.reader.cache.grow(s, grown)
}

// bytes estimates the memory of the rows, and of what Build makes of them.
func (r *Rows) bytes() int64 {
	const built = 160 // of a server group or an instance
	var n int64
	for _, list := range [][]*Object{r.own, r.pods, r.replicaSets, r.services, pointers(r.Workloads), pointers(r.WorkloadPods)} {
		n += int64(len(list)) * (int64(unsafe.Sizeof(Object{})) + built)
		for _, o := range list {
			n += textBytes(o)
		}
	}
	return n
}

// textBytes estimates the texts of a row. Those that rows share are counted once for each.
func textBytes(o *Object) int64 {
	n := len(o.UID) + len(o.Name) + len(o.Owner.UID) + len(o.Owner.Name) + len(o.Moniker.Cluster)
	for _, list := range [][]string{o.Images, o.LoadBalancers, o.Attributes.Services} {
		for _, text := range slices.All(list) {
			n += len(text) + 16
		}
	}
	for _, labels := range []map[string]string{o.TemplateLabels, o.Selector} {
		for label, value := range labels {
			n += len(label) + len(value) + 48
		}
	}
	return int64(n + 32*len(o.Containers))
}
