package vedette

// AccountName names one cluster as users of Spinnaker know it. It is unique in
// an installation and belongs to the first cluster that registers under it.
type AccountName string

// AgentID names one running agent process: its pod name, or host name and a
// random suffix outside of Kubernetes. Two replicas of one agent have two IDs.
type AgentID string

// ServerID names one running server process.
type ServerID string

// Term counts the changes of an account's cacher. Whoever writes an account's
// changes carries the term it was given, and a lower term than the stored one
// is refused, so that a cacher that was replaced can do no harm.
type Term int64

// Mark is a resourceVersion up to which a feed is known. It is opaque: it is
// compared for equality only and handed back to the API server that gave it.
// The empty mark means that nothing is known and that the feed must be listed.
type Mark string

// ChangeCauseAnnotation says why a workload's revision was made. kubectl writes and
// shows it, and controllers copy it to what holds the revision.
const ChangeCauseAnnotation = "kubernetes.io/change-cause"
