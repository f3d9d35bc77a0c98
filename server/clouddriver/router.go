package clouddriver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is a method, and a path whose segments in braces take anything, the
// empty segment included. HEAD is answered as GET is.
type route struct {
	method  string
	pattern string
	handle  func(w http.ResponseWriter, r *http.Request, p parts) error
}

// parts are what a route's braces took, unescaped.
type parts map[string]string

// router finds the route of a path as it stands in the request: it cleans
// nothing and redirects nowhere.
type router struct {
	api    *api
	routes []route
}

func (ro router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, route := range ro.routes {
		p, ok := match(route.pattern, r.URL.EscapedPath())
		if !ok {
			continue
		}
		if !route.takes(r.Method) {
			allowed = append(allowed, route.methods()...)
			continue
		}
		if err := route.handle(w, r, p); err != nil {
			ro.api.fail(w, r, err)
		}
		return
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeError(w, http.StatusMethodNotAllowed, "org.springframework.web.HttpRequestMethodNotSupportedException", "Request method '"+r.Method+"' is not supported")
		return
	}
	writeError(w, http.StatusNotFound, notFoundException, "No handler found for "+r.Method+" "+r.URL.EscapedPath())
}

func (ro route) takes(method string) bool { return slices.Contains(ro.methods(), method) }

func (ro route) methods() []string {
	if ro.method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{ro.method}
}

// match compares an escaped path with a pattern, segment by segment. A segment
// may hold an escaped slash, so it is unescaped only once it is cut out.
func match(pattern, path string) (parts, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(want) != len(got) {
		return nil, false
	}
	p := parts{}
	for i, segment := range want {
		text, err := url.PathUnescape(got[i])
		name, wild := strings.CutPrefix(segment, "{")
		switch {
		case err != nil:
			return nil, false
		case wild:
			p[strings.TrimSuffix(name, "}")] = text
		case text != segment:
			return nil, false
		}
	}
	return p, true
}
