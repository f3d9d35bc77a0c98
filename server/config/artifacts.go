package config

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
)

// Artifacts configures artifact accounts, with Clouddriver's keys. Files with credentials are read
// when they are used, so that a rotated file needs no restart.
type Artifacts struct {
	artifacts.Settings

	// Halyard's templates for Jenkins messages, which other services use.
	Templates configfile.Ignored `config:"templates,ignored"`
	// The server does not fetch charts from OCI registries; a Clouddriver behind it (upstream) does.
	HelmOCI configfile.Ignored `config:"helm-oci,alias=helmOci,ignored,warn"`
	// The server does not fetch from Maven repositories; a Clouddriver behind it (upstream) does.
	Maven configfile.Ignored `config:"maven,ignored,warn"`
	// The server does not fetch from Ivy repositories; a Clouddriver behind it (upstream) does.
	Ivy configfile.Ignored `config:"ivy,ignored,warn"`
}

// ArtifactStore is where Spinnaker's other services keep large artifacts, with their keys.
type ArtifactStore struct {
	artifacts.StoreConfig

	// The server does not write to the store.
	ApplicationsRegex string `config:"applicationsRegex,alias=applications-regex,ignored"`
	// The server does not write to the store.
	Exclude configfile.Ignored `config:"exclude,ignored"`
	// The server renders no charts.
	Helm configfile.Ignored `config:"helm,ignored"`
}

// ArtifactConfig returns the configuration of package artifacts.
func (c *Config) ArtifactConfig() artifacts.Config {
	cfg := c.Artifacts.Config()
	cfg.Store, cfg.Front50URL = c.ArtifactStore.StoreConfig, c.Front50.url()
	return cfg
}
