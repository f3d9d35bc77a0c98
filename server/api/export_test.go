package api

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/operations"
	"github.com/vedette-io/vedette/server/api/parameters"
)

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
func MatchGlob(pattern, text string) bool { return parameters.NewGlob(pattern).Match(text) }

// CopyLog exports copyLog.
var CopyLog = copyLog

// LogWriteTimeout exports logWriteTimeout.
const LogWriteTimeout = logWriteTimeout

// Store is the interface that fake stores of tests embed.
type Store = readStore

// DigestOf returns what the history keeps of an operation with an id from its caller.
func DigestOf(op vedette.Operation, key string) string {
	return operations.NewDigester([]byte(key)).Of(op)
}
