package clouddriver

import (
	"log/slog"

	"github.com/vedette-io/vedette/server/middleware"
)

// Routes returns the patterns of all routes with their methods, for example "POST {provider}/ops".
func Routes() []string {
	var patterns []string
	for _, r := range (&api{Config: Config{Tasks: struct{ taskService }{}}}).router().routes {
		patterns = append(patterns, r.method()+" "+r.path())
	}
	return patterns
}

// MatchPath matches an escaped path against the path of a route, and returns the unescaped texts
// that matched the segments in braces.
func MatchPath(pattern, path string) (map[string]string, bool) { return matchPath(pattern, path) }

// Fail returns a function that answers requests with errors in Clouddriver's form.
func Fail(log *slog.Logger) middleware.RefuseFunc { return (&api{Config: Config{Log: log}}).fail }
