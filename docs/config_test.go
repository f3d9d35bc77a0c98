package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	agentconfig "github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configfile"
	serverconfig "github.com/vedette-io/vedette/server/config"
)

// TestFilesOfTheOtherProgramAreRejected checks for each key at the top that only one program has that the other one
// rejects a file with nothing else.
func TestFilesOfTheOtherProgramAreRejected(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	loadAgent := func(file string) error { _, err := agentconfig.Load(file, none); return err }
	loadServer := func(file string) error { _, err := serverconfig.Load(file, none); return err }
	ofAgent, ofServer := topKeys(agentconfig.Config{}), topKeys(serverconfig.Config{})
	for _, tt := range []struct {
		own, others []string
		load        func(file string) error
		other       string
	}{{ofAgent, ofServer, loadAgent, "vedette-server"}, {ofServer, ofAgent, loadServer, "vedette-agent"}} {
		for _, key := range tt.others {
			file := filepath.Join(t.TempDir(), "c.yml")
			if err := os.WriteFile(file, []byte(key+": {}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := tt.load(file)
			isRejected := err != nil && strings.Contains(err.Error(), "this seems to be the configuration of "+tt.other)
			if isShared := slices.Contains(tt.own, key); isRejected == isShared {
				t.Errorf("%s, which is a key of both programs: %t: got %v from the other program", key, isShared, err)
			}
		}
	}
}

// topKeys returns the keys at the top of a configuration that have an effect.
func topKeys(config any) (keys []string) {
	for _, key := range configfile.Keys(config) {
		top, _, _ := strings.Cut(key.Path, ".")
		if key.Status == configfile.ActiveKey && !slices.Contains(keys, top) {
			keys = append(keys, top)
		}
	}
	return keys
}
