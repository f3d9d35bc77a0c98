package upstream

import (
	"strings"

	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/upstream/merging"
)

// Mode is who answers an endpoint.
type Mode string

// The modes. In all modes but Local and PassedOn, the request decides. Users know Local as "own".
const (
	// Local endpoints are answered by this server.
	Local Mode = "own"
	// PassedOn endpoints are answered by the upstream Clouddriver.
	PassedOn Mode = "passed on"
	// Merged endpoints are answered by both, and the answers are merged.
	Merged Mode = "merged"
	// ByAccount requests are answered by this server if they are about an account of an agent, and passed on otherwise.
	ByAccount Mode = "by account"
	// ByProvider requests are merged for the provider kubernetes, and passed on for others.
	ByProvider Mode = "by provider"
	// ByOperations requests are answered by this server if any of their operations is about an account of an agent; it submits the others
	// to the upstream Clouddriver. Without such an operation they are passed on.
	ByOperations Mode = "by account of each operation"
	// ByTask requests are answered by this server if it has the task, and passed on otherwise.
	ByTask Mode = "by task"
	// ByBody requests are answered by this server if the account in the body is one of an agent, and passed on otherwise.
	ByBody Mode = "by account in the body"
	// ByID requests are answered by this server if it has what they name, and passed on otherwise.
	ByID Mode = "by id"
	// ByArtifact requests are answered by this server if it has the artifact account, and passed on otherwise.
	ByArtifact Mode = "by artifact account"
)

// Endpoint says who answers the requests of one path.
type Endpoint struct {
	web.Pattern
	Mode   Mode
	Policy Policy // of merged answers
	Note   string // remark for users; may be empty

	// Merged answers have one of them: stream for lists of objects, merge for answers that are merged as a whole.
	stream  *streamRule
	merge   merging.Func
	subject subject
	// isMissingThere is set if the upstream Clouddriver answers 404 for something that it does not have. For other endpoints, 404 is a
	// failure.
	isMissingThere bool
	// isOfPlugin is set for endpoints of the predecessor's plugin. A Clouddriver without it, or with an older one, has nothing there.
	isOfPlugin bool
	// ownerPath is the path, without the id at its end, at which this server says whether it has what a ByID request names.
	ownerPath string
}

// joiner returns the function that sends both parts of a merged answer.
func (e Endpoint) joiner(m *merge, local localPart, theirs part) (send func() error, err error) {
	if e.stream != nil {
		return m.joinStreams(local, theirs)
	}
	return m.joinDocuments(local, theirs)
}

// route is the decision about a request.
type route struct {
	Endpoint
	params map[string]string // the texts of the segments in braces
}

func (r route) name() string {
	if r.Pattern == "" {
		return "passed on"
	}
	return r.Method() + " /" + r.Path()
}

// findRoute returns the endpoint of a request. Requests that are not in the table are passed on. A
// trailing slash is ignored if nothing matches with it, as in package clouddriver.
func findRoute(table []Endpoint, method, path string) route {
	shorter, hasSlash := strings.CutSuffix(path, "/")
	if found, ok := matchTable(table, method, path); ok && !(hasSlash && found.isOfPlugin) { // an empty id stands for the list
		return found
	}
	if hasSlash {
		if found, ok := matchTable(table, method, shorter); ok {
			return found
		}
	}
	return route{Endpoint: Endpoint{Mode: PassedOn}}
}

// matchTable returns the first endpoint with the method and the path. If none has the method, it
// returns the first one that is Local or decided by the account in the path: then package clouddriver
// rejects the method.
func matchTable(table []Endpoint, method, path string) (route, bool) {
	var other *route
	slashes := strings.Count(strings.TrimPrefix(path, "/"), "/")
	for _, e := range table {
		if strings.Count(string(e.Pattern), "/") != slashes { // much cheaper than to match
			continue
		}
		params, ok := web.MatchPath(e.Path(), path)
		switch {
		case !ok:
		case e.Accepts(method):
			return route{e, params}, true
		case other == nil && (e.Mode == Local || e.Mode == ByAccount):
			other = &route{e, params}
		}
	}
	if other == nil {
		return route{}, false
	}
	return *other, true
}
