package artifacts

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// Restrictions are an account's rules for the hosts that references may name (urlRestrictions).
// They are in addition to the policy for addresses. Nil means no rules. Patterns come from
// CompilePattern.
type Restrictions struct {
	AllowedHostnames *regexp.Regexp   // must match; nil allows all
	ExcludedPatterns []*regexp.Regexp // must not match
	AllowedDomains   []*regexp.Regexp // if there are any, one must match
	AllowedSchemes   []string         // none means http and https
	RejectIPs        bool             // reject addresses in place of names
	RejectedNetworks []netip.Prefix
	AllowLoopback    bool
	AllowLinkLocal   bool
}

// CompilePattern compiles an expression that matches whole host names, like Java's matches.
func CompilePattern(expression string) (*regexp.Regexp, error) {
	p, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "invalid regular expression: %w", err)
	}
	return p, nil
}

// Check returns an error if a URL, or a redirect to it, is against the rules.
func (r *Restrictions) Check(u *url.URL) error {
	if r == nil {
		return nil
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") // a dot at the end changes the text, not the host
	_, err := netip.ParseAddr(host)
	isIP := err == nil
	switch {
	case len(r.AllowedSchemes) > 0 && !slices.Contains(r.AllowedSchemes, strings.ToLower(u.Scheme)):
		return rejected(host, "the scheme "+u.Scheme+" is not allowed")
	case isIP && r.RejectIPs:
		return rejected(host, "Verbatim IP addresses are not allowed")
	case !isIP && !r.allowsName(host):
		return rejected(host, "Host not allowed")
	case len(r.AllowedDomains) > 0 && !matchesAny(r.AllowedDomains, host):
		return rejected(host, "Host not allowed")
	}
	return nil
}

func (r *Restrictions) allowsName(host string) bool {
	if matchesAny(r.AllowedDomains, host) {
		return true
	}
	return (r.AllowedHostnames == nil || r.AllowedHostnames.MatchString(host)) && !matchesAny(r.ExcludedPatterns, host)
}

func rejected(host, reason string) error {
	return vedette.Errorf(vedette.Invalid, "%s: %.300s (see urlRestrictions of the account)", reason, host)
}

func matchesAny(patterns []*regexp.Regexp, host string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(host) })
}

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	// The address of AWS' metadata service is link-local, too, so that who allows link-local
	// addresses allows it.
	linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}
)

// client returns the client for an account with these rules.
func (r *Restrictions) client(cfg Config, shared *egress.Client) *egress.Client {
	if r == nil || len(r.RejectedNetworks) == 0 && !r.AllowLoopback && !r.AllowLinkLocal {
		return shared
	}
	policy := egress.Policy{Allowed: slices.Clone(cfg.Policy.Allowed), Denied: cfg.Policy.Denied, Rejected: r.RejectedNetworks}
	if r.AllowLoopback {
		policy.Allowed = append(policy.Allowed, loopback...)
	}
	if r.AllowLinkLocal {
		policy.Allowed = append(policy.Allowed, linkLocal...)
	}
	return egress.New(policy, cfg.Limits)
}
