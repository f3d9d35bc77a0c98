package configfile

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// SecretTexts returns the secrets that files and environment variables contain as they are: values of
// settings that are secret, and passwords in URLs. What came from a reference is not among them, nor
// what the configuration also contains openly, such as a password that equals the user's name: it is
// in lines for that reason. Log lines must not contain these texts.
func (r *Report) SecretTexts() []string {
	return slices.DeleteFunc(slices.Clone(r.literals), func(text string) bool { return r.openTexts[text] })
}

// secretWord matches names whose values are secrets.
var secretWord = regexp.MustCompile(`(?i)token|pass|secret|key|cred|auth`)

// authScheme matches the value of an Authorization header.
var authScheme = regexp.MustCompile(`(?i)^(?:bearer|basic|token)\s+(\S+)$`)

// addLiterals records the secrets in a value in a file or the environment.
func (r *Report) addLiterals(p location, text string, isSensitive bool) {
	text = strings.TrimSpace(text)
	address, isURL := parseURL(text)
	if isURL {
		r.addURL(address, text)
	}
	if !isSensitive {
		r.addOpenText(text)
	}
	switch {
	case !isSensitive || isURL || text == "":
	case strings.HasSuffix(p.path, "]"): // arguments are also names of clusters and regions, which log lines need
		if name, value, found := strings.Cut(text, "="); found && secretWord.MatchString(name) {
			r.addLiteral(value)
		}
	default:
		r.addLiteral(text)
		if credentials := authScheme.FindStringSubmatch(text); credentials != nil {
			r.addLiteral(credentials[1])
		}
	}
}

func (r *Report) addOpenText(text string) {
	if r.openTexts == nil {
		r.openTexts = map[string]bool{}
	}
	r.openTexts[text] = true
}

func (r *Report) addLiteral(text string) {
	if text != "" {
		r.literals = append(r.literals, text)
	}
}

func parseURL(text string) (*url.URL, bool) {
	if !strings.Contains(text, "://") || strings.Contains(text, "\n") {
		return nil, false
	}
	address, err := url.Parse(strings.TrimPrefix(text, "jdbc:"))
	return address, err == nil && address.Host != ""
}

// addURL records the password of a URL, and parameters that are secret by their names, also as they are
// written. The user, the parts of the path and other parameters are open.
func (r *Report) addURL(address *url.URL, text string) {
	r.addOpenText(address.User.Username())
	for part := range strings.SplitSeq(address.Path, "/") {
		r.addOpenText(part)
	}
	if password, ok := address.User.Password(); ok {
		r.addLiteral(password)
		if _, rest, found := strings.Cut(text, "://"); found {
			user, _, _ := strings.Cut(rest, "@")
			if _, written, found := strings.Cut(user, ":"); found && written != password {
				r.addLiteral(written)
			}
		}
	}
	for name, values := range address.Query() {
		for _, value := range values {
			if secretWord.MatchString(name) {
				r.addLiteral(value)
			} else {
				r.addOpenText(value)
			}
		}
	}
}
