package artifacts

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// OracleAccount is an account of Oracle Cloud, whose Object Storage has the objects.
type OracleAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// Namespace of Object Storage.
	Namespace string `config:"namespace"`
	// Region, for example us-phoenix-1.
	Region string `config:"region"`
	// OCID of the user.
	UserID string `config:"userId"`
	// Fingerprint of the key.
	Fingerprint string `config:"fingerprint"`
	// File with the private key.
	PrivateKeyPath string `config:"sshPrivateKeyFilePath"`
	// Passphrase of the private key.
	PrivateKeyPassphrase configfile.Secret `config:"privateKeyPassphrase"`
	// OCID of the tenancy.
	TenancyID string `config:"tenancyId"`

	// Endpoint replaces https://objectstorage.REGION.oraclecloud.com in tests.
	Endpoint string
}

func (a OracleAccount) fetcher(client *egress.Client) fetcher {
	if a.Endpoint == "" {
		a.Endpoint = "https://objectstorage." + a.Region + ".oraclecloud.com"
	}
	c := oracleClient{a, client}
	return bucketFetcher{Account: Account{a.Name, []string{"oracle/object"}, "artifacts-oracle"}, scheme: "oci://", open: c.open}
}

type oracleClient struct {
	account OracleAccount
	client  *egress.Client
}

func (c oracleClient) open(ctx context.Context, o bucket.Object) (io.ReadCloser, error) {
	u, err := c.locate(splitVersion(o))
	if err != nil {
		return nil, err
	}
	body, err := c.client.Get(ctx, egress.Request{URL: u, Sign: c.sign})
	return body, asNotFound(err, notfound.Oracle, "Object not found (key: %.300s)", o.Path)
}

func (c oracleClient) locate(o bucket.Object) (*url.URL, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	base, err := url.Parse(c.account.Endpoint)
	if err != nil || base.Host == "" {
		return nil, errors.New("the account's region is not valid")
	}
	u, err := bucket.WithEscapedPath(base, "/n/"+url.PathEscape(c.account.Namespace)+"/b/"+o.Bucket+"/o/"+bucket.EscapePath(o.Path))
	if err == nil && o.Version != "" {
		u.RawQuery = url.Values{"versionId": {o.Version}}.Encode()
	}
	return u, err
}

// sign adds a signature of the date, the target and the host, as Oracle's API requires for
// requests without a body.
func (c oracleClient) sign(r *http.Request) error {
	key, err := c.privateKey()
	if err != nil {
		return err
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	r.Header.Set("Date", date)
	text := fmt.Sprintf("date: %s\n(request-target): get %s\nhost: %s", date, r.URL.RequestURI(), r.URL.Host)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return fmt.Errorf("sign the request: %w", err)
	}
	r.Header.Set("Authorization", fmt.Sprintf(
		`Signature version="1",keyId="%s/%s/%s",algorithm="rsa-sha256",headers="date (request-target) host",signature="%s"`,
		c.account.TenancyID, c.account.UserID, c.account.Fingerprint, base64.StdEncoding.EncodeToString(signature)))
	return nil
}

func (c oracleClient) privateKey() (*rsa.PrivateKey, error) {
	path := strings.TrimPrefix(c.account.PrivateKeyPath, "file:")
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("the file %s is not a PEM file", path)
	}
	key, err := parseRSAKey(block, []byte(c.account.PrivateKeyPassphrase.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("the file %s is not a usable RSA key: %w", path, err)
	}
	return key, nil
}
