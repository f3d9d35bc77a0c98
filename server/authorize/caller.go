package authorize

import (
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Access is a kind of access, by Fiat's names.
type Access string

// The kinds of access.
const (
	Read    Access = "READ"
	Write   Access = "WRITE"
	Execute Access = "EXECUTE"
)

// Anonymous is the user of requests that name none.
const Anonymous = "anonymous"

// Caller is the sender of a request, as Spinnaker's services pass it on in headers. It is not
// verified: every client that can reach the server can claim any user.
type Caller struct {
	User string // Anonymous if the request names none
	// Requester is who sent it, for the history and for logs.
	Requester vedette.Requester
	// Accounts are the accounts that Gate found the user entitled to. They are used if Fiat is not
	// configured, or if it is unreachable and Fiat.LegacyFallback is on.
	Accounts []string
	// Header holds the X-SPINNAKER headers of the request. They are sent along with requests to
	// other services.
	Header http.Header
}

const headerPrefix = "X-Spinnaker-"

// CallerOf returns the sender of a request. Spaces and tabs around a header are not part of it, also if HTTP/2
// has left them there. Other white space, for example a no-break space, belongs to names.
func CallerOf(r *http.Request) Caller {
	c := Caller{User: textproto.TrimString(r.Header.Get(headerPrefix + "User")), Requester: RequesterOf(r), Header: http.Header{}}
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
			account = textproto.TrimString(account)
			if account != "" {
				c.Accounts = append(c.Accounts, account)
			}
		}
	}
	return c
}

// LogValue returns who it is and the execution.
func (c Caller) LogValue() slog.Value {
	attrs := c.Requester.LogValue().Group()
	if len(attrs) == 0 { // not of a request
		attrs = []slog.Attr{slog.String("user", c.User)}
	}
	for key, header := range map[string]string{"execution": "Execution-Id", "request": "Request-Id", "application": "Application"} {
		if value := c.Header.Get(headerPrefix + header); value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	return slog.GroupValue(attrs...)
}

// hasAccount reports whether Gate has found the user entitled to an account. Gate sends names in lower
// case, so a name may also stand for another account, see Config.HasSimilar.
func (c Caller) hasAccount(account string) bool {
	return slices.Contains(c.Accounts, account) || slices.Contains(c.Accounts, strings.ToLower(account))
}
