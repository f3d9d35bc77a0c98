package vedette

import "time"

// Condition says whether something holds for an account or an agent, as the conditions of Kubernetes' objects
// do. It is for what is wrong although everything still works.
// docs/decisions/0146 lists them.
type Condition struct {
	Type    string // one word
	Holds   bool   // what the type says; if not, something is wrong
	Reason  string // one word
	Message string // for people; must not contain secrets
	Since   time.Time
}

// The types of conditions.
const (
	// CredentialsCurrent says that the credentials in the files of an account are in use. If not, those from before
	// are.
	CredentialsCurrent = "CredentialsCurrent"
	// CredentialsValid says that the credentials of an account do not end soon. It is absent if nothing says when they end.
	CredentialsValid = "CredentialsValid"
	// VersionTested says that the agent was tested with the cluster's version of Kubernetes. It is absent if that holds.
	VersionTested = "VersionTested"
	// FilesCurrent says that the certificates, keys and authorities in the files of a program are in use. If not,
	// those from before are.
	FilesCurrent = "FilesCurrent"
)
