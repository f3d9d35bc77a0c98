package configfile

import (
	"slices"

	"github.com/vedette-io/vedette"
)

// CheckLostFiles returns an error if a file that had settings is empty in a later report: it is being
// written, or a program that writes it has failed. So it does if no file is left. program is what must
// be restarted to go on without files.
func CheckLostFiles(before, after *Report, program string) error {
	if before.Base != "" && after.Base == "" {
		return vedette.Errorf(vedette.Invalid, "%s does not exist anymore, and neither does another configuration file: restore it, or restart the %s",
			before.Base, program)
	}
	states := map[string]FileState{}
	for _, file := range after.Files {
		states[file.Path] = file.State
	}
	for _, path := range before.ReadFiles() {
		if state, isKnown := states[path]; isKnown && state == FileEmpty {
			return vedette.Errorf(vedette.Invalid, "%s has become empty: write its settings again, or remove the file if its settings shall not apply anymore", path)
		}
	}
	return nil
}

// ChangedKeys returns the keys of settings whose values differ, in their order.
func ChangedKeys(now, before []KeyValue) []string {
	values, earlier := valuesByKey(now), valuesByKey(before)
	var keys []string
	seen := map[string]bool{} // a configuration may have tens of thousands of keys
	for _, kv := range slices.Concat(now, before) {
		if values[kv.Key] != earlier[kv.Key] && !seen[kv.Key] {
			seen[kv.Key] = true
			keys = append(keys, kv.Key)
		}
	}
	return keys
}

func valuesByKey(settings []KeyValue) map[string]string {
	values := map[string]string{}
	for _, kv := range settings {
		values[kv.Key] = kv.Value
	}
	return values
}
