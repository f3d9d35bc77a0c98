package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// listCommand is the argument with which bench runs itself as the plain paged list.
const listCommand = "list"

// listAndWait reads all pages of lists, 500 objects each, and discards them. It prints how long
// that took and waits until it is killed, so that its memory can be measured. The arguments
// are the URL, the CA, the certificate, the key, and the paths of the lists.
func listAndWait(args []string) error {
	client, err := newTLSClient(args[1], args[2], args[3])
	if err != nil {
		return err
	}
	began, received := time.Now(), int64(0)
	for _, path := range args[4:] {
		n, err := listAll(client, args[0]+path)
		if err != nil {
			return err
		}
		received += n
	}
	fmt.Printf("done %d %d\n", time.Since(began).Nanoseconds(), received)
	<-context.Background().Done()
	return nil
}

func newTLSClient(ca, cert, key string) (*http.Client, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}, nil
}

func listAll(client *http.Client, url string) (int64, error) {
	total, next := int64(0), ""
	for {
		resp, err := client.Get(url + "?limit=500" + next)
		if err != nil {
			return 0, err
		}
		head := make([]byte, 4<<10)
		n, err := io.ReadFull(resp.Body, head)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		rest, err := io.Copy(io.Discard, resp.Body)
		if err != nil {
			return 0, err
		}
		if err := resp.Body.Close(); err != nil {
			return 0, err
		}
		if resp.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("%s: %s", url, head[:n])
		}
		total += int64(n) + rest
		token := continueToken(head[:n])
		if token == "" {
			return total, nil
		}
		next = "&continue=" + token
	}
}

// continueToken returns the continue token, which is at the beginning of lists of built-in
// kinds.
func continueToken(head []byte) string {
	_, rest, found := bytes.Cut(head, []byte(`"continue":"`))
	if !found {
		return ""
	}
	token, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(token)
}
