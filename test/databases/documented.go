package databases

import "strings"

// DocumentedSettings returns the settings of databases of several machines that users need too, as configuration files have them.
func DocumentedSettings() []string {
	all := []string{"pool_mode = transaction", "use_pg_rewind: true", "primary_start_timeout: 0", haproxyPatroniCheck, haproxyOnDown, haproxyOnUp, "option external-check",
		`[ "$state" = "wsrep_ready	ON" ]`}
	for _, setting := range GaleraSettings {
		name, value, _ := strings.Cut(setting, "=")
		all = append(all, strings.ReplaceAll(name, "-", "_")+" = "+value)
	}
	return all
}
