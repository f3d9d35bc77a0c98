// Package configload reads configurations with the secrets to which they refer, and reads them again after their files have
// changed. Both programs share it.
//
// A file is read and parsed once (configfile.Read). If it refers to no secrets, its content is decoded once, too: for a thousand accounts,
// decoding allocates 16 MB. Otherwise it is decoded three times: to find the references, so that all secrets are fetched at the same
// time; for the settings of the engines; and with the secrets.
package configload

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
)

// Loaded is what a configuration keeps of how it was read. Configurations embed it.
type Loaded struct {
	Report *configfile.Report

	secrets *secrets
}

// Load decodes a configuration. before is that of the configuration which this one may follow; nil for none. Either Adopt or Close
// the result; the one before stays in effect until then.
func Load[C any](content *configfile.Content, before *Loaded) (*C, Loaded) {
	return load[C](content, before, secret.Timing{})
}

func load[C any](content *configfile.Content, before *Loaded, timing secret.Timing) (*C, Loaded) {
	s := &secrets{getenv: content.Getenv(), timing: timing}
	if before == nil {
		secret.RemoveAbandoned() // this configuration may have no files with secrets, and would not do so
	} else {
		s.previous = before.secrets
	}
	var references []string
	c := new(C)
	report := content.Decode(c, func(reference string) (string, error) {
		references = append(references, reference)
		return "", nil
	})
	if len(references) > 0 {
		s.open(content)
		s.load.Prefetch(references)
		c = new(C)
		report = content.Decode(c, s.resolve)
	}
	return c, Loaded{Report: report, secrets: s}
}

// loaded makes what embeds Loaded a Config.
func (l *Loaded) loaded() *Loaded { return l }

// Close removes the temporary files with secrets.
func (l *Loaded) Close() error { return l.secrets.release() }

// Adopt makes a configuration the successor of the one whose Next it is, which must not be used anymore.
func (l *Loaded) Adopt() error { return wrapAdopt(l.secrets.adopt()) }

// AdoptRetaining is Adopt for a configuration of which parts are not in effect: what is in effect in their place keeps its files
// with secrets.
func (l *Loaded) AdoptRetaining() error { return wrapAdopt(l.secrets.adoptRetaining()) }

func wrapAdopt(err error) error {
	if err != nil {
		return fmt.Errorf("remove secrets that are not used anymore: %w", err)
	}
	return nil
}

// RefreshSecrets fetches the secrets that the configuration refers to again, and returns the references
// of those that have changed. Temporary files are replaced; for other values, read the configuration
// again.
func (l *Loaded) RefreshSecrets(ctx context.Context) ([]string, error) { return l.secrets.refresh(ctx) }

// SecretValues returns the secrets that the configuration contains or refers to.
func (l *Loaded) SecretValues() []string {
	return append(l.Report.SecretTexts(), l.secrets.values()...)
}

// UnknownKeys returns the unknown keys that belong to other products, for example "swagger".
func (l *Loaded) UnknownKeys() []string { return l.Report.UnknownKeys() }

// Files returns the files that were read or looked for. If one of them changes or appears, the
// configuration may be another one.
func (l *Loaded) Files() []configfile.File { return l.Report.Files }

// ReadFiles returns the files that were read.
func (l *Loaded) ReadFiles() []string { return l.Report.ReadFiles() }

// Config is a configuration that embeds Loaded.
type Config interface{ loaded() *Loaded }

// Next loads the configuration that follows one, and returns the files that were read or looked for, even
// if there is an error. Either Adopt or Close the result; the one before stays in effect until then.
//
// Files that had content and are empty now are errors: they are being written, or a program that writes
// them has failed. So is a configuration of which no file is left. program is what must be restarted to
// go on without files.
func Next[C Config](before C, load func(before *Loaded) (C, []configfile.File, error), program string) (C, []configfile.File, error) {
	var none C
	next, files, err := load(before.loaded())
	if err != nil {
		return none, files, err
	}
	if err := configfile.CheckLostFiles(before.loaded().Report, next.loaded().Report, program); err != nil {
		_ = next.loaded().Close() // its error would hide the first one
		return none, files, err
	}
	return next, files, nil
}
