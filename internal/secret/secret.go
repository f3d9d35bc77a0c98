// Package secret resolves references to secrets in configurations, with the grammar of Spinnaker and
// the Scale Agent:
//
//	encrypted:ENGINE!KEY:VALUE!KEY:VALUE       becomes the secret
//	encryptedFile:ENGINE!KEY:VALUE!KEY:VALUE   becomes the path of a temporary file with the secret
//
// An Engine knows where secrets are kept; each has a package of its own below this one, so that the
// libraries of vendors stay apart. A Resolver fetches what references name, keeps it, and tells which
// secrets have changed. Errors name references, never secrets.
package secret

import (
	"context"
)

// Engine knows a place where secrets are kept.
type Engine interface {
	// Source returns where the secret of a reference is. It does no I/O; an error means that the
	// reference is wrong.
	Source(r Reference) (Source, error)
}

// Source is a document of an engine, and where a secret is in it. Several references may share a
// document, which is fetched once.
type Source struct {
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
