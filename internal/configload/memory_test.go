package configload

import (
	"runtime"
	"testing"
	"weak"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestFilesAreNotKept checks that a configuration does not keep the content of its files in memory,
// which takes more than itself. Engines of secrets still read the environment.
func TestFilesAreNotKept(t *testing.T) {
	for _, text := range []string{"password: one\n", "password: encrypted:noop!two\n"} {
		source := configfile.ReadData("a.yml", []byte(text), configfile.Options{}, testConfig{})
		files := weak.Make(source)
		c, loaded := Load[testConfig](source, nil)
		runtime.GC()
		if files.Value() != nil {
			t.Errorf("%s: the content of the file is still in memory", text)
		}
		runtime.KeepAlive(c)
		if err := loaded.Close(); err != nil {
			t.Error(err)
		}
	}
}
