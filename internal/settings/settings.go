// Package settings has the groups of keys that the configurations of both programs share.
package settings

import "strings"

// Reporter receives what is wrong with settings, at paths from the top of the configuration.
type Reporter struct {
	Problem func(path, format string, args ...any)
	Notice  func(path, text string) // about a setting that is valid but unusual
}

// FilePath removes Spring's prefix from the name of a file.
func FilePath(name string) string { return strings.TrimPrefix(name, "file:") }

// CheckFile rejects locations that only Spring can load.
func CheckFile(path, file string, r Reporter) {
	if strings.HasPrefix(file, "classpath:") || strings.HasPrefix(file, "configserver:") {
		r.Problem(path, "%q must be the path of a file, optionally with the prefix file:", path)
	}
}
