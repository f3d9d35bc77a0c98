package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/internal/metricset"
)

// install writes a certificate, its key and its authority as server.crt, server.key and ca.crt. The
// time of modification is moved by ahead, because the clock of the file system may be coarse.
func install(t *testing.T, a *keypairtest.Authority, dir string, ahead time.Duration) {
	t.Helper()
	pair := a.Issue("server")
	for from, to := range map[string]string{pair.Cert: "server.crt", pair.Key: "server.key", a.File: "ca.crt"} {
		data, err := os.ReadFile(from)
		path, at := filepath.Join(dir, to), time.Now().Add(ahead)
		if err = errors.Join(err, os.WriteFile(path, data, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
}

// scrape reads metrics. The client trusts a pool, and has a certificate of an authority, or none.
func scrape(t *testing.T, address string, pool *x509.CertPool, client *keypairtest.Authority) error {
	t.Helper()
	config := &tls.Config{RootCAs: pool}
	if client != nil {
		pair := client.Issue("prometheus")
		cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("https://" + address + "/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(body), "go_goroutines ") {
		err = errors.New("got no metrics")
	}
	return err
}

// TestMetricsOverTLS checks that a scrape needs a certificate, and that rotated files count without a
// restart: the server's certificate, and the authorities of clients.
func TestMetricsOverTLS(t *testing.T) {
	dir, old, rotated := t.TempDir(), keypairtest.New(t), keypairtest.New(t)
	install(t, old, dir, -time.Hour)
	var ssl SSL
	parse(t, fmt.Sprintf("{enabled: true, certFile: 'file:%s/server.crt', keyFile: %s/server.key, cacertFile: %s/ca.crt, clientAuth: need}", dir, dir, dir), &ssl)
	tlsConfig, err := ssl.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := metricset.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- metricset.New().Serve(t.Context(), listener, tlsConfig, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	address := listener.Addr().String()
	expect := func(step string, accepted bool, err error) {
		t.Helper()
		if (err == nil) != accepted {
			t.Errorf("%s: got %v", step, err)
		}
	}
	expect("with a certificate", true, scrape(t, address, old.Pool, old))
	expect("without a certificate", false, scrape(t, address, old.Pool, nil))
	expect("with another authority's certificate", false, scrape(t, address, old.Pool, rotated))
	install(t, rotated, dir, 0)
	expect("rotated: with a new certificate", true, scrape(t, address, rotated.Pool, rotated))
	expect("rotated: with an old certificate", false, scrape(t, address, rotated.Pool, old))
	expect("rotated: a client that trusts the old authority only", false, scrape(t, address, old.Pool, rotated))
}
