package logging

import (
	"os"
	"strings"
	"testing"
)

// TestFullDiskDoesNotStopTheProgram logs to a device that is always full.
func TestFullDiskDoesNotStopTheProgram(t *testing.T) {
	const full = "/dev/full"
	log, _, stderr := open(t, File{Path: full, MaxSizeMB: 1})
	for range 100 {
		log.Info("hello")
	}
	if got := stderr.String(); strings.Count(got, "cannot write the log file") != 1 || strings.Count(got, "msg=hello") != 100 ||
		!strings.Contains(got, "no space left on device") {
		t.Errorf("got %.300q, want one report and all lines", got)
	}
	if info, err := os.Stat(full); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device was replaced: %v, %v", info, err)
	}
}
