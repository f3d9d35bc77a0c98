package clouddriver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// route is a path whose segments in braces take anything, the empty segment
// included; what follows a brace must follow in the path. A method may stand
// before it, "POST ops"; without one it is GET, which HEAD is too.
type route struct {
	pattern string
	handle  func(w http.ResponseWriter, r *http.Request, p pathParams) error
}

func (r route) method() string {
	if method, _, ok := strings.Cut(r.pattern, " "); ok {
		return method
	}
	return http.MethodGet
}

func (r route) path() string {
	_, path, ok := strings.Cut(r.pattern, " ")
	if !ok {
		return r.pattern
	}
	return path
}

func (r route) accepts(method string) bool {
	return method == r.method() || method == http.MethodHead && r.method() == http.MethodGet
}

// pathParams are what a route's braces took, unescaped.
type pathParams map[string]string

// router finds the route of a path as it stands in the request: it cleans
// nothing and redirects nowhere. A slash too many at the end is ignored where no
// route has it, as Clouddriver ignores it: callers of before Retrofit 2 write
// "artifacts/fetch/".
type router struct {
	api    *api
	routes []route
}

func (ro router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	methods, found := ro.tryRoutes(w, r, path)
	if shorter, hasSlash := strings.CutSuffix(path, "/"); hasSlash && !found && methods == nil {
		methods, found = ro.tryRoutes(w, r, shorter)
	}
	switch {
	case found:
	case methods != nil:
		w.Header().Set("Allow", allowHeader(methods))
		writeError(w, http.StatusMethodNotAllowed, "org.springframework.web.HttpRequestMethodNotSupportedException", "Request method '"+r.Method+"' is not supported")
	default:
		writeError(w, http.StatusNotFound, notFoundException, "No handler found for "+r.Method+" "+path)
	}
}

// tryRoutes answers by the first route that has the path and takes the method. Where
// there is none, it returns the methods of those that have the path.
func (ro router) tryRoutes(w http.ResponseWriter, r *http.Request, path string) (methods []string, found bool) {
	for _, route := range ro.routes {
		p, ok := matchPath(route.path(), path)
		if !ok {
			continue
		}
		if !route.accepts(r.Method) {
			methods = append(methods, route.method())
			continue
		}
		if err := ro.serveRoute(w, r, route, p); err != nil {
			ro.api.fail(w, r, err)
		}
		return nil, true
	}
	return methods, false
}

// serveRoute refuses what a page of another site makes a browser send: who runs a
// server on their own machine would lend it to all that they visit. Spinnaker's
// services are no browsers.
func (ro router) serveRoute(w http.ResponseWriter, r *http.Request, route route, p pathParams) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return vedette.Errorf(vedette.Denied, "the request was sent by a page of another site: %w", err)
	}
	return route.handle(w, r, p)
}

// allowHeader writes methods as the header has them.
func allowHeader(methods []string) string {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}

// matchPath compares an escaped path with a pattern, segment by segment. A segment
// may hold an escaped slash, so it is unescaped only once it is cut out.
func matchPath(pattern, path string) (pathParams, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(want) != len(got) {
		return nil, false
	}
	p := pathParams{}
	for i, segment := range want {
		text, err := url.PathUnescape(got[i])
		name, isWildcard := strings.CutPrefix(segment, "{")
		name, suffix, _ := strings.Cut(name, "}")
		value, hasSuffix := strings.CutSuffix(text, suffix)
		switch {
		case err != nil:
			return nil, false
		case isWildcard && hasSuffix:
			p[name] = value
		case isWildcard:
			return nil, false
		case text != segment:
			return nil, false
		}
	}
	return p, true
}
