package upstream

// Policy is what happens to an answer that concerns both if the upstream Clouddriver does not give its part in time.
// Spinnaker's services take whatever comes with status 200 for the truth.
type Policy string

// The policies.
const (
	// Complete answers are whole, or an error that services retry: 503 with Retry-After.
	Complete Policy = "complete or 503"
	// LastAnswer answers have the last complete part of the upstream Clouddriver instead, with its age in ageHeader. They
	// change slowly, and what is missing in them does harm: permissions, applications.
	LastAnswer Policy = "last complete part"
	// Partial answers are for persons. They are Complete unless the configuration allows that the part is missing. Then
	// incompleteHeader says so.
	Partial Policy = "complete or 503; without that part if `upstream.partial` is set"
)

// incompleteHeader says that a merged answer lacks the part of the upstream Clouddriver, and why: "upstream; reason=timeout".
const incompleteHeader = "X-Vedette-Incomplete"

// incompleteFor returns the value of incompleteHeader.
func incompleteFor(reason string) string { return "upstream; reason=" + reason }

// ageHeader has the age in seconds of the upstream Clouddriver's part of an answer, if that is its last complete one.
const ageHeader = "X-Vedette-Upstream-Age"

// subject is what a request that concerns both is about. The upstream Clouddriver is asked only if it may have that.
type subject int

// The subjects.
const (
	anything       subject = iota // whatever the upstream Clouddriver has
	objects                       // of any account
	oneApplication                // {app}
	oneObjectList                 // objects of {app}, of which applications has only those with workloads
	serverGroups                  // by ids or applications in the query
)
