package configfile

import "log/slog"

// maxInactiveLines limits the lines about keys without effect at start. The command check lists all.
const maxInactiveLines = 40

// LogUnused logs at start that settings have no effect: a line for each key, or group of keys, that is set
// to something other than its default, with the reason, as a warning if users may rely on its effect. One
// warning names the keys of other products, of which copied files have hundreds. reference is the page
// with all reasons.
func LogUnused(log *slog.Logger, config interface {
	InactiveSettings() []Inactive
	UnknownKeys() []string
}, reference string) {
	settings := config.InactiveSettings()
	for _, s := range settings[:min(len(settings), maxInactiveLines)] {
		line := log.Info
		if s.IsReliedOn {
			line = log.Warn
		}
		line("setting without effect", "key", s.Key, "at", s.At.String(), "reason", s.Reason)
	}
	if more := len(settings) - maxInactiveLines; more > 0 {
		log.Warn("more settings have no effect; the command check lists them", "count", more, "reference", reference)
	}
	if keys := config.UnknownKeys(); len(keys) > 0 {
		log.Warn("unknown keys of other products are ignored", "keys", shorten(keys))
	}
}
