package web

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/rest"
)

// Handler answers a request, or returns the error that Fail answers it with.
type Handler func(w http.ResponseWriter, r *http.Request, p Params) error

// Pattern is a path with an optional method, for example "POST ops/{name}". A segment in braces
// matches any text, including the empty segment; text after the brace must match too. Without
// a method it stands for GET and HEAD.
type Pattern string

// Method returns the method, which also stands for HEAD if it is GET.
func (p Pattern) Method() string {
	if method, _, ok := strings.Cut(string(p), " "); ok {
		return method
	}
	return http.MethodGet
}

// Path returns the path without the method.
func (p Pattern) Path() string {
	if _, path, ok := strings.Cut(string(p), " "); ok {
		return path
	}
	return string(p)
}

// Accepts reports whether requests with a method match.
func (p Pattern) Accepts(method string) bool {
	return method == p.Method() || method == http.MethodHead && p.Method() == http.MethodGet
}

// Route is a pattern with its handler.
type Route struct {
	Pattern
	handle Handler
}

// Handle returns a route.
func Handle(pattern Pattern, handle Handler) Route { return Route{pattern, handle} }

// Params are the unescaped texts that matched the segments in braces.
type Params map[string]string

// router matches paths as they are in the request: it does not clean them and does not
// redirect. If no route matches a path that ends in a slash, the slash is ignored like in
// Clouddriver, because callers from before Retrofit 2 send "artifacts/fetch/".
type router struct {
	routes []Route
	fail   middleware.RejectFunc
}

// NewRouter returns a handler of routes, which are matched in their order. It must not be registered with a ServeMux,
// because a ServeMux redirects paths with an empty segment. Orca uses an empty segment for the
// namespace of cluster-scoped objects.
func NewRouter(routes []Route, log *slog.Logger) http.Handler { return router{routes, Fail(log)} }

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
		message := "Request method '" + r.Method + "' is not supported"
		if instead := insteadOf(r.Method, path); instead != "" {
			message += ": " + instead
		}
		writeError(w, &Error{Status: http.StatusMethodNotAllowed, Exception: "org.springframework.web.HttpRequestMethodNotSupportedException",
			Message: message})
	default:
		WriteNoHandler(w, r, ScaleAgentHint(r.Method, path))
	}
}

// tryRoutes serves a request by the first route that matches the path and the method. If there
// is none, it returns the methods of the routes that match the path.
func (ro router) tryRoutes(w http.ResponseWriter, r *http.Request, path string) (methods []string, found bool) {
	for _, route := range ro.routes {
		p, ok := MatchPath(route.Path(), path)
		if !ok {
			continue
		}
		if !route.Accepts(r.Method) {
			methods = append(methods, route.Method())
			continue
		}
		middleware.SetRoute(r, route.Method()+" /"+route.Path())
		err := rest.CheckOrigin(r)
		if err == nil {
			err = route.handle(w, r, p)
		}
		if err != nil {
			ro.fail(w, r, err)
		}
		return nil, true
	}
	return methods, false
}

func allowHeader(methods []string) string {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}

// MatchPath matches an escaped path against the path of a pattern, segment by segment, and returns the unescaped texts
// that matched the segments in braces. Segments are unescaped after splitting, because they can contain escaped slashes.
func MatchPath(pattern, path string) (Params, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(want) != len(got) {
		return nil, false
	}
	p := Params{}
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
