// Package configload has what the configurations of both programs share: how they are read with the
// secrets that they refer to, and read again after their files have changed.
package configload

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/engines"
)

// Loaded is what a configuration keeps of how it was read. Configurations embed it.
type Loaded struct {
	Report *configfile.Report
	Loader *engines.Loader
}

// loaded makes what embeds Loaded a Config.
func (l *Loaded) loaded() *Loaded { return l }

// Close removes the temporary files with secrets.
func (l *Loaded) Close() error { return l.Loader.Close() }

// Adopt makes a configuration the successor of the one whose Next it is, which must not be used anymore.
func (l *Loaded) Adopt() error {
	if err := l.Loader.Adopt(); err != nil {
		return fmt.Errorf("remove secrets that are not used anymore: %w", err)
	}
	return nil
}

// RefreshSecrets fetches the secrets that the configuration refers to again, and returns the references
// of those that have changed. Temporary files are replaced; for other values, read the configuration
// again.
func (l *Loaded) RefreshSecrets(ctx context.Context) ([]string, error) { return l.Loader.Refresh(ctx) }

// SecretValues returns the secrets that the configuration contains or refers to.
func (l *Loaded) SecretValues() []string { return append(l.Report.SecretTexts(), l.Loader.Values()...) }

// Unused returns the keys that are set but have no effect in this version, for example
// "armory-agent.yml:7:3: hub.auth.token".
func (l *Loaded) Unused() []string { return l.Report.Unused() }

// UnknownKeys returns the unknown keys that belong to other products, for example "swagger".
func (l *Loaded) UnknownKeys() []string { return l.Report.UnknownKeys() }

// Files returns the files that were read or looked for. If one of them changes or appears, the
// configuration may be another one.
func (l *Loaded) Files() []configfile.File { return l.Report.Files }

// ReadFiles returns the files that were read.
func (l *Loaded) ReadFiles() []string { return l.Report.ReadFiles() }
