package artifacts

import (
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// URLRestrictions are rules for the hosts that an account's references may name, in addition to the policy for addresses. If an
// account has the group, its keys have Clouddriver's defaults.
type URLRestrictions struct {
	// Regular expression that host names must match. The default excludes names without a dot, such as Services of Kubernetes.
	AllowedHostnamesRegex string `config:"allowedHostnamesRegex" default:".*\\..+"`
	// Schemes of URLs.
	AllowedSchemes []string `config:"allowedSchemes" default:"http,https"`
	// Deny loopback addresses. If false, this account may use them.
	RejectLocalhost bool `config:"rejectLocalhost" default:"true"`
	// Deny link-local addresses. If false, this account may use them, and the cloud provider's metadata service is one of them.
	RejectLinkLocal bool `config:"rejectLinkLocal" default:"true"`
	// Deny addresses in place of host names.
	RejectVerbatimIPs bool `config:"rejectVerbatimIps" default:"true"`
	// Regular expressions of host names. If there are any, one must match.
	AllowedDomains []string `config:"allowedDomains"`
	// Addresses and networks to deny.
	RejectedIPs []string `config:"rejectedIps"`
	// Domains whose subdomains are denied.
	ExcludedDomains []string `config:"excludedDomains" default:"spinnaker,local,localdomain,internal"`
	// Environment variables with such domains.
	ExcludedDomainsFromEnvironment []string `config:"excludedDomainsFromEnvironment"`
	// Regular expressions of host names that are denied.
	ExtraExcludedPatterns []string `config:"extraExcludedPatterns"`
	// Excluded domains are compared as such.
	ExcludedDomainTemplate string `config:"excludedDomainTemplate,ignored"`
}

// check reports what is wrong with the rules at a key of an account.
func (u *URLRestrictions) check(c configfile.Checker, key string) {
	for _, expression := range slices.Concat([]string{u.AllowedHostnamesRegex}, u.AllowedDomains, u.ExtraExcludedPatterns) {
		if _, err := compilePattern(expression); err != nil {
			c.Problem(key, " has an invalid regular expression, %q: Go's expressions have no lookarounds and no backreferences", expression)
		}
	}
	checkNetworks(c.At(key), "rejectedIps", u.RejectedIPs)
}

// compile returns the rules; nil for nil. What check rejects is left out.
func (u *URLRestrictions) compile() *restrictions {
	if u == nil {
		return nil
	}
	r := &restrictions{allowedSchemes: u.AllowedSchemes, allowedDomains: patterns(u.AllowedDomains), rejectIPs: u.RejectVerbatimIPs,
		rejectedNetworks: networks(u.RejectedIPs), allowLoopback: !u.RejectLocalhost, allowLinkLocal: !u.RejectLinkLocal}
	r.allowedHostnames, _ = compilePattern(u.AllowedHostnamesRegex)
	domains := slices.Clone(u.ExcludedDomains)
	for _, name := range u.ExcludedDomainsFromEnvironment {
		if domain := os.Getenv(name); domain != "" {
			domains = append(domains, domain)
		}
	}
	excluded := slices.Clone(u.ExtraExcludedPatterns)
	for _, domain := range domains {
		excluded = append(excluded, `.+\.`+regexp.QuoteMeta(strings.ToLower(domain)))
	}
	r.excludedPatterns = patterns(excluded)
	return r
}

// patterns compiles expressions that were checked.
func patterns(expressions []string) (compiled []*regexp.Regexp) {
	for _, expression := range expressions {
		if p, err := compilePattern(expression); err == nil {
			compiled = append(compiled, p)
		}
	}
	return compiled
}

// restrictions are URLRestrictions in the form in which they are compared. Nil means no rules.
type restrictions struct {
	allowedHostnames *regexp.Regexp   // must match; nil allows all
	excludedPatterns []*regexp.Regexp // must not match
	allowedDomains   []*regexp.Regexp // if there are any, one must match
	allowedSchemes   []string         // none means http and https
	rejectIPs        bool             // reject addresses in place of names
	rejectedNetworks []netip.Prefix
	allowLoopback    bool
	allowLinkLocal   bool
}

// compilePattern compiles an expression that matches whole host names, like Java's matches.
func compilePattern(expression string) (*regexp.Regexp, error) {
	p, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "invalid regular expression: %w", err)
	}
	return p, nil
}

// Check returns an error if a URL, or a redirect to it, is against the rules.
func (r *restrictions) Check(u *url.URL) error {
	if r == nil {
		return nil
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") // a dot at the end changes the text, not the host
	_, err := netip.ParseAddr(host)
	isIP := err == nil
	switch {
	case len(r.allowedSchemes) > 0 && !slices.Contains(r.allowedSchemes, strings.ToLower(u.Scheme)):
		return rejected(host, "the scheme "+u.Scheme+" is not allowed")
	case isIP && r.rejectIPs:
		return rejected(host, "Verbatim IP addresses are not allowed")
	case !isIP && !r.allowsName(host):
		return rejected(host, "Host not allowed")
	case len(r.allowedDomains) > 0 && !matchesAny(r.allowedDomains, host):
		return rejected(host, "Host not allowed")
	}
	return nil
}

func (r *restrictions) allowsName(host string) bool {
	if matchesAny(r.allowedDomains, host) {
		return true
	}
	return (r.allowedHostnames == nil || r.allowedHostnames.MatchString(host)) && !matchesAny(r.excludedPatterns, host)
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
func (r *restrictions) client(cfg Config, shared *egress.Client) *egress.Client {
	if r == nil || len(r.rejectedNetworks) == 0 && !r.allowLoopback && !r.allowLinkLocal {
		return shared
	}
	policy := egress.Policy{Allowed: slices.Clone(cfg.Policy.Allowed), Denied: cfg.Policy.Denied, Rejected: r.rejectedNetworks}
	if r.allowLoopback {
		policy.Allowed = append(policy.Allowed, loopback...)
	}
	if r.allowLinkLocal {
		policy.Allowed = append(policy.Allowed, linkLocal...)
	}
	return egress.New(policy, cfg.Limits.egress())
}
