package mask

import (
	"regexp"
	"strings"
)

// hidden replaces secrets in URLs.
const hidden = "********"

// urlPattern matches a URL in a text, up to what cannot be part of it.
var urlPattern = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>]+`)

// shownParameters are parameters of URLs of databases that are no secrets, and help to find mistakes.
var shownParameters = regexp.MustCompile(`(?i)^(sslmode|tls|ssl|useSSL|requireSSL|verifyServerCertificate)=(disable|allow|prefer|require|required|verify-ca|verify_ca|verify-full|verify_identity|disabled|preferred|skip-verify|true|false)$`)

// URLs masks what may be secret in the URLs of a text: passwords, users of HTTP without a password, which are
// tokens, the values of query parameters, which are signatures, and parameters in fragments. Use it for all
// URLs that are printed or logged. A text that is masked already does not change.
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urlPattern.ReplaceAllStringFunc(text, func(match string) string {
		u := strings.TrimRight(match, ".,:;)]}") // of the sentence around it
		return maskURL(u) + match[len(u):]
	})
}

func maskURL(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = maskUser(scheme, authority[:i]) + authority[i:]
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	path, query, hasQuery := strings.Cut(rest, "?")
	masked := scheme + "://" + authority + path
	if hasQuery {
		masked += "?" + maskParameters(query)
	}
	if hasFragment {
		if strings.Contains(fragment, "=") {
			fragment = maskParameters(fragment)
		}
		masked += "#" + fragment
	}
	return masked
}

func maskUser(scheme, user string) string {
	if name, _, hasPassword := strings.Cut(user, ":"); hasPassword {
		return name + ":" + hidden
	}
	if strings.HasPrefix(strings.ToLower(scheme), "http") {
		return hidden
	}
	return user
}

func maskParameters(query string) string {
	parameters := strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' })
	for i, parameter := range parameters {
		name, _, hasValue := strings.Cut(parameter, "=")
		switch {
		case !hasValue:
			parameters[i] = hidden
		case !shownParameters.MatchString(parameter):
			parameters[i] = name + "=" + hidden
		}
	}
	return strings.Join(parameters, "&")
}
