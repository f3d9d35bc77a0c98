// Package version says which version of Vedette this is.
package version

import "runtime/debug"

// version is set by the linker.
var version string

// String returns the version that the build was given, or else what Go knows of
// the module.
func String() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
