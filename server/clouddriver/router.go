package clouddriver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/middleware"
)

// route is a handler with its pattern, for example "POST ops/{name}". A segment in braces
// matches any text, including the empty segment; text after the brace must match too. Without
// a method the route accepts GET and HEAD.
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

// pathParams are the unescaped texts that matched the segments in braces.
type pathParams map[string]string

// router matches paths as they are in the request: it does not clean them and does not
// redirect. If no route matches a path that ends in a slash, the slash is ignored like in
// Clouddriver, because callers from before Retrofit 2 send "artifacts/fetch/".
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
		writeError(w, http.StatusMethodNotAllowed, "org.springframework.web.HttpRequestMethodNotSupportedException",
			"Request method '"+r.Method+"' is not supported")
	default:
		writeError(w, http.StatusNotFound, notFoundException, "No handler found for "+r.Method+" "+path)
	}
}

// tryRoutes serves a request by the first route that matches the path and the method. If there
// is none, it returns the methods of the routes that match the path.
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
		middleware.SetRoute(r, route.method()+" /"+route.path())
		if err := ro.serveRoute(w, r, route, p); err != nil {
			ro.api.fail(w, r, err)
		}
		return nil, true
	}
	return methods, false
}

// serveRoute rejects cross-origin requests of browsers, because any web page could otherwise
// use a server on the machine of its visitor. Spinnaker's services are not browsers.
func (ro router) serveRoute(w http.ResponseWriter, r *http.Request, route route, p pathParams) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return vedette.Errorf(vedette.Denied, "cross-origin requests are rejected: %w", err)
	}
	return route.handle(w, r, p)
}

func allowHeader(methods []string) string {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}

// matchPath matches an escaped path against a pattern, segment by segment. Segments are
// unescaped after splitting, because they can contain escaped slashes.
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
