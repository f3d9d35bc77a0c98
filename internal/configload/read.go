package configload

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/engines"
)

// NewLoader returns what resolves the references of a configuration that read reads.
type NewLoader func(o configfile.Options, read func(o configfile.Options, into any)) *engines.Loader

// Read reads a configuration by decode, with its secrets. It is decoded once if it has no references to
// secrets, which matters with a thousand accounts; otherwise twice, so that all secrets are fetched at
// the same time.
func Read[C any](o configfile.Options, newLoader NewLoader, decode func(o configfile.Options, into any) *configfile.Report) (*C, Loaded) {
	var l Loaded
	l.Loader = newLoader(o, func(o configfile.Options, into any) { l.Report = decode(o, into) })
	c := new(C)
	if l.Loader.Prefetch(c) {
		o.Secrets = l.Loader.Resolve
		c = new(C)
		l.Report = decode(o, c)
	}
	return c, l
}

// Config is a configuration that embeds Loaded.
type Config interface{ loaded() *Loaded }

// Next loads the configuration that follows one, and returns the files that were read or looked for, even
// if there is an error. Either Adopt or Close the result; the one before stays in effect until then.
//
// Files that had content and are empty now are errors: they are being written, or a program that writes
// them has failed. So is a configuration of which no file is left. program is what must be restarted to
// go on without files.
func Next[C Config](before C, load func(NewLoader) (C, []configfile.File, error), program string) (C, []configfile.File, error) {
	var none C
	next, files, err := load(before.loaded().Loader.Next)
	if err != nil {
		return none, files, err
	}
	if err := configfile.CheckLostFiles(before.loaded().Report, next.loaded().Report, program); err != nil {
		_ = next.loaded().Close() // its error would hide the first one
		return none, files, err
	}
	return next, files, nil
}
