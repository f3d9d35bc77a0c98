// Package engines has the group `secrets` of both programs' configurations, and the engines that it describes.
package engines

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/vault"
)

// Settings describe the engines of references to secrets (encrypted:vault!…). Engines that are not here need
// no settings: they use the credentials of the environment, as other programs of AWS, Google and Kubernetes do.
type Settings struct {
	// Server for references to vault.
	Vault vault.Config `config:"vault"`
}

// Check reports what is wrong with the group.
func (s Settings) Check(c configfile.Checker) { s.Vault.Check(c.At("vault")) }
