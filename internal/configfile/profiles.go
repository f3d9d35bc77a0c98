package configfile

import (
	"slices"
	"strings"
)

// ProfileVariables are the environment variables with the active profiles, separated by commas. The
// first that is not empty applies.
var ProfileVariables = [...]string{"VEDETTE_PROFILES_ACTIVE", "SPRING_PROFILES_ACTIVE", "PROFILES_ACTIVE"}

// defaultProfiles are the predecessor's.
var defaultProfiles = [...]string{"armory", "local"}

// maxProfiles limits the number of active profiles, because each is a file to look for.
const maxProfiles = 20

// activeProfiles returns the active profiles, lowest precedence first. It reports names that cannot
// be part of a file name.
func activeProfiles(o Options, r *Report) []string {
	for _, variable := range ProfileVariables {
		value, _ := o.lookup(variable)
		if strings.TrimSpace(value) == "" {
			continue
		}
		return parseProfiles(variable, value, r)
	}
	return defaultProfiles[:]
}

func parseProfiles(variable, value string, r *Report) (profiles []string) {
	at := Position{File: "environment variable " + variable}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "" || slices.Contains(profiles, name):
		case !isProfileName(name):
			r.Add(at, "", "the name of a profile must consist of up to 100 letters, digits, dots, dashes and underscores, got %s", quote(name))
		case len(profiles) == maxProfiles:
			r.Add(at, "", "at most %d profiles may be active", maxProfiles)
			return profiles
		default:
			profiles = append(profiles, name)
		}
	}
	return profiles
}

// isProfileName reports whether a name can be part of a file name and leads to no other directory.
func isProfileName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	return name != "" && len(name) <= 100 && strings.Trim(name, allowed) == ""
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
