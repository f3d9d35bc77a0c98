package api

// Paths returns the paths of all routes.
func Paths() []string {
	var paths []string
	for _, r := range (&api{}).routes() {
		paths = append(paths, r.path)
	}
	return paths
}

// Routes returns the patterns of all routes, with their methods.
func Routes() []string {
	var patterns []string
	for _, r := range (&api{}).routes() {
		patterns = append(patterns, r.method+" "+r.path)
	}
	return patterns
}

// MatchGlob reports whether a pattern matches a text.
func MatchGlob(pattern, text string) bool { return newGlob(pattern).match(text) }

// CopyLog exports copyLog.
var CopyLog = copyLog

// LogWriteTimeout exports logWriteTimeout.
const LogWriteTimeout = logWriteTimeout

// Store is the interface that fake stores of tests embed.
type Store = readStore
