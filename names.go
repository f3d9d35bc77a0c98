package vedette

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Names are equal if their bytes are: those of accounts, agents, servers, kinds, namespaces,
// objects and users. Nothing folds their case, trims or pads them, or normalizes their Unicode.
// What compares names, in Go, in SQL and in JSON, compares with ==. The exceptions are what others
// define without case: kinds on the command line and in Spinnaker's requests, applications and
// roles of Fiat.

// AccountName is the name of a cluster for users of Spinnaker. It is unique in an
// installation and belongs to the first cluster that registers it.
type AccountName string

// maxAccountName is what the databases store.
const maxAccountName = 255 // bytes

// Validate rejects names that some part of Spinnaker or of HTTP takes for another one: that
// part would check the permissions of the other account. Headers lose spaces at both ends, the
// header of the accounts that a user may use is split at commas, and Spring ends the segment
// of a path at a semicolon.
func (n AccountName) Validate() error {
	name := string(n)
	problem := ""
	switch {
	case name == "" || len(name) > maxAccountName:
		return Errorf(Invalid, "the account name %.40q must have 1 to %d bytes", name, maxAccountName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		problem = "must be printable UTF-8"
	case strings.TrimSpace(name) != name:
		problem = "must not begin or end with a space, because headers lose it"
	case strings.ContainsAny(name, ",;"):
		problem = "must not contain a comma or a semicolon, because lists in headers and URLs end names there"
	case name == "." || name == "..":
		problem = "cannot be part of a URL"
	default:
		return nil
	}
	return Errorf(Invalid, "the account name %.300q %s: give the account another name in the agent's configuration", name, problem)
}

// Folded returns the name without what other services ignore: Gate, Orca and Fiat compare accounts
// without case, and Fiat's database also without accents and width. Two accounts with the same
// folded name are one account to them, so that permissions of one apply to the other. Nothing else
// compares folded names.
func (n AccountName) Folded() string {
	if strings.IndexFunc(string(n), isNotASCII) < 0 {
		return strings.ToLower(string(n))
	}
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r)) // as equalsIgnoreCase in Java
	}, norm.NFKD.String(string(n)))
}

func isNotASCII(r rune) bool { return r > unicode.MaxASCII }

// AgentID identifies one running agent process: its pod name or, outside of Kubernetes,
// its host name with a random suffix. Two replicas of one agent have two IDs.
type AgentID string

// ServerID identifies one running server process.
type ServerID string

// Term counts an account's cacher assignments. Every write of an account's changes
// carries its term. The store rejects a term that is lower than the stored one, so that
// a replaced cacher cannot overwrite newer data.
type Term int64

// Mark is the resourceVersion up to which a feed is stored. It is opaque: it is only
// compared for equality and returned to the API server that issued it. The empty mark
// means that nothing is stored and the feed must be listed.
type Mark string

// ChangeCauseAnnotation explains a workload's revision. kubectl writes and shows it,
// and controllers copy it to the object that holds the revision.
const ChangeCauseAnnotation = "kubernetes.io/change-cause"
