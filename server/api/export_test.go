package api

// Paths returns the paths that are served.
func Paths() []string {
	var paths []string
	for _, r := range (&api{}).routes() {
		paths = append(paths, r.path)
	}
	return paths
}

// Routes returns the patterns that are served, with their methods.
func Routes() []string {
	var patterns []string
	for _, r := range (&api{}).routes() {
		patterns = append(patterns, r.method+" "+r.path)
	}
	return patterns
}

// Glob is for tests.
type Glob = glob

// Match is for tests.
func (g glob) Match(text string) bool { return g.match(text) }

// CopyLog is for tests.
var CopyLog = copyLog

// LogWriteTimeout is for tests.
const LogWriteTimeout = logWriteTimeout

// Store is for tests that are a store.
type Store = readStore
