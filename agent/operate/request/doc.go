// Package request sends the requests of operations to the API server of one cluster. A Client is the cluster, with what its
// operations share: the kinds that it serves. A Sender is one operation: all its requests have the options of the
// operation, and what they bring is collected in one place.
//
// Guarantees:
//
//   - Only conflicts on something that was read, throttling, and timeouts of idempotent requests
//     are retried, unless the user wants more.
//   - A dry run changes nothing. Each of its requests that could change something has
//     dryRun=All.
//   - No request that changes something is sent after Control.MayChange has failed.
//   - An error says whether the request may have taken effect, and that something does not exist only if an API
//     server says so.
//   - Secrets are read as metadata. Messages and warnings do not quote their data.
//   - What is read counts toward Control.Memory, as what it becomes.
//
// docs/decisions/0166 says why the verbs are elsewhere.
package request
