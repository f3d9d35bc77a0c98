package configfile

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/nearest"
)

// productPrefix is the prefix of all environment variables of ours.
const productPrefix = "VEDETTE_"

// programPrefixes are the prefixes of variables that set keys of one program. Another program, whose
// environment may be the same, cannot say which of them exist.
var programPrefixes = []string{"VEDETTE_AGENT_", "VEDETTE_SERVER_"}

// commonVariables are those of the command line, and those that no key names.
var commonVariables = []string{"VEDETTE_SERVER", "VEDETTE_CONTEXT", "VEDETTE_CONFIG", "VEDETTE_USER", "VEDETTE_USER_ACCOUNTS",
	"VEDETTE_CACERT", "VEDETTE_CERT", "VEDETTE_KEY", "VEDETTE_TOKEN_FILE", "VEDETTE_SERVICE_ACCOUNT_DIR", "VEDETTE_PROFILES_ACTIVE"}

// testPrefix begins the variables of this repository's tests.
const testPrefix = "VEDETTE_TEST_"

// UnknownVariables returns the names of the variables of an environment, as os.Environ returns it,
// that begin like ours and set nothing, each with a suggestion. Their values are not returned,
// because they may be secret.
func UnknownVariables(config any, prefix string, environment []string) []string {
	known := append(variableNames(config, prefix), commonVariables...)
	var unknown []string
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, productPrefix) || slices.Contains(known, name) || isOfOtherProgram(name, value, prefix) {
			continue
		}
		unknown = append(unknown, name+nearest.Hint(name, known))
	}
	slices.Sort(unknown)
	return unknown
}

// variableNames returns the names of the variables that set keys of a configuration.
func variableNames(config any, prefix string) []string {
	var names []string
	settings := reflect.New(indirect(reflect.TypeOf(config))).Elem()
	new(decoder).walkLeaves(location{}, settings, func(p location, s keySpec, _ reflect.Value) {
		names = append(names, variablesOf(prefix, p.path, s)...)
		if s.env != "" {
			names = append(names, s.env)
		}
	})
	return names
}

// serviceVariable matches the variables that Kubernetes sets in each pod for a Service of which the
// name begins with vedette, for example VEDETTE_SERVER_SERVICE_HOST.
var serviceVariable = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// servicePort matches the values of such variables of which the name ends with _PORT.
var servicePort = regexp.MustCompile(`^(tcp|udp|sctp)://`)

// isOfOtherProgram reports whether a variable belongs to another program, or was set by Kubernetes.
func isOfOtherProgram(name, value, prefix string) bool {
	if strings.HasPrefix(name, testPrefix) || serviceVariable.MatchString(name) {
		return true
	}
	if strings.HasSuffix(name, "_PORT") && servicePort.MatchString(value) {
		return true
	}
	return slices.ContainsFunc(programPrefixes, func(other string) bool { return other != prefix && strings.HasPrefix(name, other) })
}
