package authorize

import (
	"log/slog"
	"net/http"
	"strings"
)

// Access is what somebody wants to do, as Fiat names it.
type Access string

// The sorts of access.
const (
	Read    Access = "READ"
	Write   Access = "WRITE"
	Execute Access = "EXECUTE"
)

// Anonymous is who calls where nobody says.
const Anonymous = "anonymous"

// Caller is who asks for something, as Spinnaker's services tell it from one to
// the other. It is believed: whoever can reach the server can say it.
type Caller struct {
	User string // Anonymous where nobody said
	// Accounts are those that Gate found the user's roles to allow. They count
	// where there is no Fiat, and where it can't be asked and
	// Fiat.LegacyFallback is on.
	Accounts []string
	// Header holds the X-SPINNAKER headers of the request, which are passed on to
	// whoever is asked for its sake.
	Header http.Header
}

const headerPrefix = "X-Spinnaker-"

// CallerOf reads who sent a request.
func CallerOf(r *http.Request) Caller {
	c := Caller{User: strings.TrimSpace(r.Header.Get(headerPrefix + "User")), Header: http.Header{}}
	if c.User == "" {
		c.User = Anonymous
	}
	for name, values := range r.Header {
		if strings.HasPrefix(name, headerPrefix) {
			c.Header[name] = values
		}
	}
	for _, header := range r.Header.Values(headerPrefix + "Accounts") {
		for account := range strings.SplitSeq(header, ",") {
			if account = strings.TrimSpace(account); account != "" {
				c.Accounts = append(c.Accounts, account)
			}
		}
	}
	return c
}

// LogValue says who calls and within which execution.
func (c Caller) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("user", c.User)}
	for key, header := range map[string]string{"execution": "Execution-Id", "request": "Request-Id", "application": "Application"} {
		if value := c.Header.Get(headerPrefix + header); value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	return slog.GroupValue(attrs...)
}

func (c Caller) hasAccount(account string) bool {
	for _, allowed := range c.Accounts {
		if strings.EqualFold(allowed, account) {
			return true
		}
	}
	return false
}
