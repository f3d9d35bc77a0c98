package configload

import (
	"os"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// loadNext reads the configuration that may follow another one.
func loadNext(t *testing.T, text string, before *Loaded) (*sample, *Loaded) {
	t.Helper()
	c, l := Load[sample](configfile.ReadData("s.yml", []byte(text), configfile.Options{}, &sample{}), before)
	if err := l.Report.Err(); err != nil {
		t.Fatal(err)
	}
	return c, &l
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestFilesLiveAsLongAsTheirConfiguration checks the files with secrets of configurations that follow each other.
func TestFilesLiveAsLongAsTheirConfiguration(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const one, two = "name: encryptedFile:noop!one", "name: encryptedFile:noop!two"
	first, l := loadNext(t, one, nil)
	adopt := func(next *Loaded, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		l = next
	}
	discarded, d := loadNext(t, two, l)
	if err := d.Close(); err != nil || !exists(first.Name) {
		t.Fatalf("the file of the configuration in effect is gone after another one was discarded: %v", err)
	}
	for range 3 { // parts of what was before stay in effect
		_, next := loadNext(t, two, l)
		adopt(next, next.AdoptRetaining())
	}
	if !exists(first.Name) || !exists(discarded.Name) {
		t.Errorf("files: %t %t, want both", exists(first.Name), exists(discarded.Name))
	}
	if n := len(l.secrets.retained); n != 0 {
		t.Errorf("%d resolvers are retained besides those in use", n)
	}
	_, next := loadNext(t, two, l)
	adopt(next, next.Adopt())
	if exists(first.Name) || !exists(discarded.Name) {
		t.Errorf("files: %t %t, want the second", exists(first.Name), exists(discarded.Name))
	}
	other, next := loadNext(t, two+"\nsecrets.vault: {enabled: true, url: 'http://v', authMethod: TOKEN, token: x}", l)
	adopt(next, next.AdoptRetaining())
	if !exists(discarded.Name) || !exists(other.Name) || len(l.secrets.retained) != 1 {
		t.Errorf("after other settings of engines: %t %t, %d retained", exists(discarded.Name), exists(other.Name), len(l.secrets.retained))
	}
	_, next = loadNext(t, "name: plain", l)
	adopt(next, next.Adopt())
	if exists(discarded.Name) || exists(other.Name) {
		t.Error("files of no configuration are left")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
