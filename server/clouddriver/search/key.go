package search

import "strings"

// The keys of Clouddriver's cache, which the search looks into.
const (
	infrastructurePrefix = "kubernetes.v2:infrastructure:"
	applicationPrefix    = "kubernetes.v2:logical:applications:"
	clusterPrefix        = "kubernetes.v2:logical:clusters:"
)

// keyPattern is a text that keys must contain. Its parts must follow each other, because "*" stands
// for any text.
type keyPattern []string

func newKeyPattern(text string) keyPattern { return strings.Split(text, "*") }

// matches reports whether a key contains the pattern. Like Clouddriver with Redis, it distinguishes
// upper and lower case.
func (p keyPattern) matches(key string) bool {
	for _, part := range p {
		_, after, found := strings.Cut(key, part)
		if !found {
			return false
		}
		key = after
	}
	return true
}

func (p keyPattern) matchesApplication(name string) bool {
	if text, ok := p.plain(); ok {
		return strings.Contains(name, text) || strings.Contains(applicationPrefix, text)
	}
	return p.matches(applicationPrefix + name)
}

func (p keyPattern) matchesCluster(account, application, cluster string) bool {
	if text, ok := p.plain(); ok {
		return strings.Contains(cluster, text) || strings.Contains(application, text) || strings.Contains(account, text) ||
			strings.Contains(clusterPrefix, text)
	}
	return p.matches(clusterPrefix + account + ":" + application + ":" + cluster)
}

// plain returns the text of a pattern that can only match within one part of a key.
func (p keyPattern) plain() (text string, ok bool) {
	return p[0], len(p) == 1 && !strings.Contains(p[0], ":")
}
