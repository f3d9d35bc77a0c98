// Package operate executes operations in one cluster. There is a file per verb. Package request sends what a verb requests,
// package disclosure checks patches and manifests before, package apply merges, package logs opens logs.
//
// What kubectl does between a manifest and the API server is done here as kubectl does it, with
// its field managers. So kubectl (and Clouddriver, which runs it) and Vedette can apply the same
// object in turn, and each removes the fields that the manifest no longer has.
//
// Guarantees:
//
//   - An operation ends by its deadline, with exactly one outcome.
//   - A failure has the API server's own status, reason and complete message.
//   - A dry run changes nothing, and no object of its outcome is stored.
//   - Objects in outcomes are redacted, messages do not quote the data of a Secret's manifest, and nothing of a manifest is
//     kept after its operation.
package operate
