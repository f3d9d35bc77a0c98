package api

// Paths returns the paths that are served.
func Paths() []string {
	var paths []string
	for _, r := range (&api{}).routes() {
		paths = append(paths, r.path)
	}
	return paths
}

// Glob is for tests.
type Glob = glob

// Match is for tests.
func (g glob) Match(text string) bool { return g.match(text) }

// CopyLog is for tests.
var CopyLog = copyLog

// LogPatience is for tests.
const LogPatience = logPatience
