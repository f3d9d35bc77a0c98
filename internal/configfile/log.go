package configfile

import (
	"log/slog"
	"strings"
)

// LogUnused logs at start that settings have no effect: one line counts all of
// them, one warning names those that users may rely on, and one the keys of
// other products. A line for each key would hide the warnings, because files
// that are copied from other products have hundreds of such keys. reference is
// the page with the reasons.
func LogUnused(log *slog.Logger, config interface {
	Unused() []string
	InactiveSettings() []string
	UnknownKeys() []string
}, reference string) {
	if unused := config.Unused(); len(unused) > 0 {
		log.Info("settings have no effect in this version; the command check lists them", "count", len(unused))
	}
	if keys := config.InactiveSettings(); len(keys) > 0 {
		log.Warn("settings without effect change behavior", "keys", strings.Join(keys, ", "), "reference", reference)
	}
	if keys := config.UnknownKeys(); len(keys) > 0 {
		log.Warn("unknown keys of other products are ignored", "keys", shorten(keys))
	}
}
