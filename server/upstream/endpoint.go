package upstream

import (
	"net/http"
	"strings"

	"github.com/vedette-io/vedette/server/clouddriver"
)

// Mode is who answers an endpoint.
type Mode string

// The modes. In all modes but Own and PassedOn, the request decides.
const (
	// Own endpoints are answered by this server.
	Own Mode = "own"
	// PassedOn endpoints are answered by the upstream Clouddriver.
	PassedOn Mode = "passed on"
	// Merged endpoints are answered by both, and the answers are merged.
	Merged Mode = "merged"
	// ByAccount endpoints are own for accounts of agents, and passed on for others.
	ByAccount Mode = "by account"
	// ByProvider endpoints are merged for the provider kubernetes, and passed on for others.
	ByProvider Mode = "by provider"
	// ByOperations endpoints are own if all operations concern accounts of agents, passed on if none
	// does, and otherwise own with a part that is submitted upstream.
	ByOperations Mode = "by account of each operation"
	// ByTask endpoints are own for tasks of this server, and passed on for others.
	ByTask Mode = "by task"
	// ByBody endpoints are own if the account in the body is one of agents, and passed on otherwise.
	ByBody Mode = "by account in the body"
	// ByArtifact endpoints are own for artifact accounts of this server, and passed on for others.
	ByArtifact Mode = "by artifact account"
)

// Endpoint says who answers the requests of one path.
type Endpoint struct {
	// Pattern is a path with an optional method, in the form of clouddriver.Routes. Without a method
	// it stands for GET and HEAD.
	Pattern string
	Mode    Mode
	Policy  Policy // of merged answers
	Note    string // remark for users; may be empty

	// Merged answers have one of them: stream for lists of objects, merge for answers that are merged as a whole.
	stream  *streamRule
	merge   mergeFunc
	subject subject
	// isMissingThere is set if the upstream Clouddriver answers 404 for something that it does not have. For other endpoints, 404 is a
	// failure.
	isMissingThere bool
}

// joiner returns the function that sends both parts of a merged answer.
func (e Endpoint) joiner(m *merge, own ownPart, theirs part) (send func() error, err error) {
	if e.stream != nil {
		return m.joinStreams(own, theirs)
	}
	return m.joinDocuments(own, theirs)
}

func (e Endpoint) method() string {
	if method, _, ok := strings.Cut(e.Pattern, " "); ok {
		return method
	}
	return http.MethodGet
}

func (e Endpoint) path() string {
	if _, path, ok := strings.Cut(e.Pattern, " "); ok {
		return path
	}
	return e.Pattern
}

func (e Endpoint) accepts(method string) bool {
	return method == e.method() || method == http.MethodHead && e.method() == http.MethodGet
}

// route is the decision about a request.
type route struct {
	Endpoint
	params map[string]string // the texts of the segments in braces
}

// name returns the route as metrics name it.
func (r route) name() string {
	if r.Pattern == "" {
		return "passed on"
	}
	return r.method() + " /" + r.path()
}

// findRoute returns the endpoint of a request. Requests that are not in the table are passed on. A
// trailing slash is ignored if nothing matches with it, as in package clouddriver.
func findRoute(table []Endpoint, method, path string) route {
	if found, ok := matchTable(table, method, path); ok {
		return found
	}
	if shorter, hasSlash := strings.CutSuffix(path, "/"); hasSlash {
		if found, ok := matchTable(table, method, shorter); ok {
			return found
		}
	}
	return route{Endpoint: Endpoint{Mode: PassedOn}}
}

// matchTable returns the first endpoint with the method and the path. If none has the method, it
// returns the first one that is own or decided by the account in the path: then package clouddriver
// rejects the method.
func matchTable(table []Endpoint, method, path string) (route, bool) {
	var other *route
	slashes := strings.Count(strings.TrimPrefix(path, "/"), "/")
	for _, e := range table {
		if strings.Count(e.Pattern, "/") != slashes { // much cheaper than to match
			continue
		}
		params, ok := clouddriver.MatchPath(e.path(), path)
		switch {
		case !ok:
		case e.accepts(method):
			return route{e, params}, true
		case other == nil && (e.Mode == Own || e.Mode == ByAccount):
			other = &route{e, params}
		}
	}
	if other == nil {
		return route{}, false
	}
	return *other, true
}
