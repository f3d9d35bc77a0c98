package keypair

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnusableFilesAreReportedOnce checks what is reported about files that are replaced by ones that cannot be used, and by good ones
// again.
func TestUnusableFilesAreReportedOnce(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	files := ca.writePair(t, dir, "x")
	caFile := write(t, filepath.Join(dir, "ca.crt"), certPEM(ca.cert))
	good, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(ca.writePair(t, t.TempDir(), "y").Cert)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var states []UseState
		var log strings.Builder
		done := make(chan error)
		go func() {
			done <- Watch(ctx, []Use{{Name: "server.ssl", KeyPair: files, CAFile: caFile}}, slog.New(slog.NewTextHandler(&log, nil)),
				func(s []UseState) { states = s })
		}()
		synctest.Wait() // otherwise the first read may meet the first write
		for _, step := range []struct {
			name, file string
			content    []byte
			want       string // in the problem; empty for none
		}{
			{"at first", files.Cert, good, ""},
			{"another certificate, with the old key", files.Cert, other, "does not belong"},
			{"again", files.Cert, other, "does not belong"},
			{"the right one", files.Cert, good, ""},
			{"half of an authority", caFile, []byte("-----BEGIN CERT"), "must be only -----BEGIN TYPE-----"},
			{"the authority", caFile, certPEM(ca.cert), ""},
		} {
			write(t, step.file, step.content)
			time.Sleep(watchInterval)
			synctest.Wait()
			if got := states[0].Describe(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
				t.Errorf("%s: got %q, want %q", step.name, got, step.want)
			}
			if step.want == "" && !states[0].Expiry.After(time.Now().Add(-100*365*24*time.Hour)) {
				t.Errorf("%s: got no end of the certificate", step.name)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "cannot be used"); n != 2 {
			t.Errorf("got %d lines about problems, want one for each of 2: %s", n, log.String())
		}
	})
}
