package vedette

// AccountName is the name of a cluster for users of Spinnaker. It is unique in an
// installation and belongs to the first cluster that registers it.
type AccountName string

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
