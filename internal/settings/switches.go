package settings

import (
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logging"
)

// Switches returns the settings of groups that both programs have, without which others have no effect.
func Switches(l Logging, m Management) []configfile.Switch {
	isFile := !strings.EqualFold(l.Path, logging.Stdout) && !strings.EqualFold(l.Path, logging.Stderr) && l.Path != ""
	switches := []configfile.Switch{{Keys: "management.server.", IsOff: !m.IsEnabled(), Except: "management.server.port",
		Because: "management.server.port is not set"}}
	for _, key := range []string{"multiWrite", "maxSizeMb", "maxAgeDays", "maxBackups", "compress"} {
		switches = append(switches, configfile.Switch{Keys: "logging." + key, IsOff: !isFile, Because: "logging.file is not the path of a file"})
	}
	return switches
}
