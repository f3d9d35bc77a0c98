// Package secret resolves references to secrets in configurations, with the grammar of Spinnaker and
// the Scale Agent:
//
//	encrypted:ENGINE!KEY:VALUE!KEY:VALUE       becomes the secret
//	encryptedFile:ENGINE!KEY:VALUE!KEY:VALUE   becomes the path of a temporary file with the secret
//
// An Engine knows where secrets are kept; each has a package of its own below this one, so that the
// libraries of vendors stay apart. A Resolver fetches what references name, keeps it, and tells which
// secrets have changed. Errors name references, never secrets.
// docs/decisions/0089 says why each engine uses the library that it uses.
//
// A temporary file keeps its path for as long as its reference is used, and new content replaces the file as a whole, so that
// what watches files needs nothing new for secrets that change. The name is a hash of the reference. A lock in the directory
// shows that its process lives, because containers that share a volume have the same process ids. A file system in memory
// (memfd) was considered: paths like /proc/self/fd/7 cannot be replaced as a whole, and exec plugins do not see them.
package secret

import (
	"context"
)

// Engine knows a place where secrets are kept.
type Engine interface {
	// Locate returns where the secret of a reference is. It does no I/O; an error means that the
	// reference is wrong.
	Locate(r Reference) (Location, error)
}

// Location is a document of an engine, and where a secret is in it. Several references may share a
// document, which is fetched once.
type Location struct {
	// Document names the document within its engine.
	Document string
	// Fetch returns the document. An error of kind vedette.Unavailable means that a retry may
	// succeed.
	Fetch func(ctx context.Context) ([]byte, error)
	// Select returns the secret in the document. Its errors must not quote the document.
	Select func(document []byte) (string, error)
}

// MaxDocumentBytes limits a document. Kubernetes and Vault have limits of 1 MiB for a secret.
const MaxDocumentBytes = 4 << 20

// Whole selects the whole document.
func Whole(document []byte) (string, error) { return string(document), nil }
