package artifacts_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/manifest"
)

// s3Server is a bucket that checks signatures as AWS describes them.
type s3Server struct {
	secret  string
	region  string
	objects map[string]string // path to content
	tags    map[string]string // path to the tag "application"
}

func (s s3Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.verify(r); err != nil {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>%s</Message></Error>", err)
		return
	}
	content, ok := s.objects[r.URL.Path]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
	case r.URL.Query().Has("tagging"):
		fmt.Fprint(w, `<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet><Tag><Key>other</Key><Value>x</Value></Tag>`)
		if tag := s.tags[r.URL.Path]; tag != "" {
			fmt.Fprintf(w, "<Tag><Key>application</Key><Value>%s</Value></Tag>", tag)
		}
		fmt.Fprint(w, "</TagSet></Tagging>")
	default:
		fmt.Fprint(w, content)
	}
}

var awsAuthorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKID/(\d{8})/([a-z0-9-]+)/s3/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

// verify computes the signature of version 4 from the request.
func (s s3Server) verify(r *http.Request) error {
	m := awsAuthorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return fmt.Errorf("Authorization is %q", r.Header.Get("Authorization"))
	}
	date, region, signed := m[1], m[2], strings.Split(m[3], ";")
	if !slices.Contains(signed, "host") || !slices.Contains(signed, "x-amz-date") || !slices.Contains(signed, "x-amz-content-sha256") || region != s.region {
		return fmt.Errorf("signed headers %q in region %s", signed, region)
	}
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n"
	for _, name := range signed {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		canonical += name + ":" + value + "\n"
	}
	canonical += "\n" + m[3] + "\n" + r.Header.Get("X-Amz-Content-Sha256")
	sum := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + date + "/" + region + "/s3/aws4_request\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + s.secret)
	for _, part := range []string{date, region, "s3", "aws4_request", text} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	if hex.EncodeToString(key) != m[4] {
		return errors.New("the signature is wrong")
	}
	return nil
}

func TestObjectsAreFetchedFromS3(t *testing.T) {
	server := serve(t, s3Server{secret: "s3cret", region: "eu-1", objects: map[string]string{
		"/bucket/k8s/web.yaml": "kind: Deployment\n", "/bucket/a b+c/ü%2F~'(!).yaml": "escaped", "/dotted.bucket/x": "dotted"}}.ServeHTTP)
	account := artifacts.S3Account{Name: "s3", Endpoint: server, Region: "eu-1", AccessKeyID: "AKID", SecretKey: configfile.NewSecret("s3cret")}
	wrong := account
	wrong.Name, wrong.SecretKey = "wrong", configfile.NewSecret("x")
	accounts := newAccounts(artifacts.Config{S3: []artifacts.S3Account{account, wrong}})
	for reference, want := range map[string]string{
		"s3://bucket/k8s/web.yaml": "kind: Deployment\n", "bucket/k8s/web.yaml": "kind: Deployment\n",
		"s3://bucket/a b+c/ü%2F~'(!).yaml": "escaped", "s3://dotted.bucket/x": "dotted",
	} {
		if got := mustFetch(t, accounts, artifact("s3/object", "s3", "", reference)); got != want {
			t.Errorf("%s: got %q, want %q", reference, got, want)
		}
	}
	_, err := fetch(t, accounts, artifact("s3/object", "s3", "", "s3://bucket/missing"))
	expectError(t, "a missing object", err, vedette.NotFound, "s3://bucket/missing not found")
	_, err = fetch(t, accounts, artifact("s3/object", "wrong", "", "s3://bucket/k8s/web.yaml"))
	expectError(t, "a wrong secret", err, "", "answered with status 403")
	for _, reference := range []string{"", "s3://", "s3://bucket", "s3://bucket/", "s3:///x", "s3://evil.example@127.0.0.1/x", "s3://a?b/c", "s3://a#b/c",
		"s3://a/../bucket/k8s/web.yaml", "s3://bucket/k8s/./web.yaml", "s3://a/b/.."} {
		_, err := fetch(t, accounts, artifact("s3/object", "s3", "", reference))
		expectError(t, reference, err, vedette.Invalid, "")
	}
}

// TestS3CredentialsOfTheEnvironment checks the means of other programs for AWS.
func TestS3CredentialsOfTheEnvironment(t *testing.T) {
	server := serve(t, s3Server{secret: "from-env", region: "eu-2", objects: map[string]string{"/b/k": "x"}}.ServeHTTP)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "from-env")
	t.Setenv("AWS_REGION", "eu-2")
	accounts := newAccounts(artifacts.Config{S3: []artifacts.S3Account{{Name: "s3", Endpoint: server}}})
	if got := mustFetch(t, accounts, artifact("s3/object", "s3", "", "s3://b/k")); got != "x" {
		t.Errorf("got %q, want x", got)
	}
}

func newKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// newTokenServer issues an access token to who signs with a key.
func newTokenServer(t *testing.T, key *rsa.PrivateKey) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.PostFormValue("assertion"), ".")
		if len(parts) != 3 {
			http.Error(w, "no assertion", http.StatusBadRequest)
			return
		}
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature); err != nil || !strings.Contains(string(claims), "devstorage.read_only") {
			http.Error(w, "bad assertion", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"acc3ss","token_type":"Bearer","expires_in":3600}`)
	})
}

func TestObjectsAreFetchedFromGCS(t *testing.T) {
	key, text := newKey(t)
	path := filepath.Join(t.TempDir(), "key.json")
	account, _ := json.Marshal(map[string]string{"type": "service_account", "client_email": "a@example.com", "private_key_id": "1",
		"private_key": text, "token_uri": newTokenServer(t, key)})
	writeFile(t, path, string(account))
	storage := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer acc3ss":
			http.Error(w, "no token", http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "missing"):
			writeNotFound(w, "No such object: bucket/missing")
		default:
			fmt.Fprint(w, r.RequestURI)
		}
	})
	accounts := newAccounts(artifacts.Config{GCS: []artifacts.GCSAccount{{Name: "gcs", JSONPath: path, Endpoint: storage}, {Name: "nofile", JSONPath: path + "x", Endpoint: storage}}})
	for reference, want := range map[string]string{
		"gs://bucket/k8s/web.yaml":         "/storage/v1/b/bucket/o/k8s%2Fweb.yaml?alt=media",
		"bucket/a b#1490":                  "/storage/v1/b/bucket/o/a%20b?alt=media&generation=1490",
		"gs://my_bucket.example.com/a#b#7": "/storage/v1/b/my_bucket.example.com/o/a%23b?alt=media&generation=7",
	} {
		if got := mustFetch(t, accounts, artifact("gcs/object", "gcs", "", reference)); got != want {
			t.Errorf("%s: got %q, want %q", reference, got, want)
		}
	}
	_, err := fetch(t, accounts, artifact("gcs/object", "gcs", "", "gs://bucket/missing"))
	expectError(t, "a missing object", err, vedette.NotFound, "gs://bucket/missing not found")
	_, err = fetch(t, accounts, artifact("gcs/object", "gcs", "", "gs://bucket/x#latest"))
	expectError(t, "no generation", err, vedette.Invalid, "must be the number of a generation")
	_, err = fetch(t, accounts, artifact("gcs/object", "nofile", "", "gs://bucket/x"))
	expectError(t, "no key", err, "", "no such file")
	_, err = fetch(t, accounts, artifact("gcs/object", "gcs", "", "gs://bucket"))
	expectError(t, "no path", err, vedette.Invalid, "gs://<bucket>/<file-path>")
}

var oracleAuthorization = regexp.MustCompile(`^Signature version="1",keyId="tenancy/user/fi:ng",algorithm="rsa-sha256",headers="date \(request-target\) host",signature="([^"]+)"$`)

func TestObjectsAreFetchedFromOracle(t *testing.T) {
	key, text := newKey(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := oracleAuthorization.FindStringSubmatch(r.Header.Get("Authorization"))
		if m == nil {
			http.Error(w, "no signature", http.StatusUnauthorized)
			return
		}
		signature, _ := base64.StdEncoding.DecodeString(m[1])
		digest := sha256.Sum256([]byte("date: " + r.Header.Get("Date") + "\n(request-target): get " + r.RequestURI + "\nhost: " + r.Host))
		date, err := http.ParseTime(r.Header.Get("Date"))
		if err != nil || time.Since(date).Abs() > 5*time.Minute || rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature) != nil {
			http.Error(w, "bad signature", http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, "missing") {
			writeNotFound(w, `{"code":"ObjectNotFound","message":"The object was not found"}`)
			return
		}
		fmt.Fprint(w, r.RequestURI)
	})
	dir := t.TempDir()
	writeFile(t, dir+"/pkcs8", text)
	writeFile(t, dir+"/pkcs1", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	encrypted, err := x509.EncryptPEMBlock(rand.Reader, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key), []byte("pass"), x509.PEMCipherAES256) //nolint:staticcheck // as Oracle's instructions produce it
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/encrypted", string(pem.EncodeToMemory(encrypted)))
	writeFile(t, dir+"/garbage", "x")
	cfg := artifacts.Config{}
	for _, name := range []string{"pkcs8", "pkcs1", "encrypted", "garbage"} {
		cfg.Oracle = append(cfg.Oracle, artifacts.OracleAccount{Name: name, Namespace: "ns", UserID: "user", TenancyID: "tenancy", Fingerprint: "fi:ng",
			PrivateKeyPath: dir + "/" + name, PrivateKeyPassphrase: configfile.NewSecret("pass"), Endpoint: server})
	}
	accounts := newAccounts(cfg)
	for _, name := range []string{"pkcs8", "pkcs1", "encrypted"} {
		got := mustFetch(t, accounts, artifact("oracle/object", name, "", "oci://bucket/k8s/web a.yaml#"+url.QueryEscape("1/2")))
		if want := "/n/ns/b/bucket/o/k8s/web%20a.yaml?versionId=1%252F2"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	_, err = fetch(t, accounts, artifact("oracle/object", "pkcs8", "", "oci://bucket/missing"))
	expectError(t, "a missing object", err, vedette.NotFound, "Object not found (key: missing)")
	_, err = fetch(t, accounts, artifact("oracle/object", "garbage", "", "oci://bucket/x"))
	expectError(t, "no key", err, "", "is not a PEM file")
}

// writeNotFound answers 404 as a service does.
func writeNotFound(w http.ResponseWriter, body string) {
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprint(w, body)
}

// TestGatewaysDoNotSayMissing checks that the 404 of something else at the address of a service is a failure, and does not mean that
// an artifact is missing.
func TestGatewaysDoNotSayMissing(t *testing.T) {
	key, text := newKey(t)
	tokens := newTokenServer(t, key)
	dir := t.TempDir()
	account, _ := json.Marshal(map[string]string{"type": "service_account", "client_email": "a@example.com", "private_key_id": "1",
		"private_key": text, "token_uri": tokens})
	writeFile(t, dir+"/gcs", string(account))
	writeFile(t, dir+"/oracle", text)
	for name, body := range map[string]string{"a page": "<html><title>404 Not Found</title></html>", "a text": "404 page not found", "nothing": "", "JSON": `{"message":"no route"}`} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) { writeNotFound(w, body) })
		base, _ := url.Parse(server)
		accounts := newAccounts(artifacts.Config{
			S3:         []artifacts.S3Account{{Name: "s3", Endpoint: server, EndpointRegion: "eu-1", AccessKeyID: "AKID", SecretKey: configfile.NewSecret("s3cret")}},
			GCS:        []artifacts.GCSAccount{{Name: "gcs", JSONPath: dir + "/gcs", Endpoint: server}},
			Oracle:     []artifacts.OracleAccount{{Name: "oracle", PrivateKeyPath: dir + "/oracle", Endpoint: server}},
			Front50URL: base,
			Store: artifacts.StoreConfig{Type: "s3", S3: artifacts.StoreBucket{Bucket: "store", URL: server, Region: "eu-1", AccessKey: "AKID",
				SecretKey: configfile.NewSecret("s3cret"), ForcePathStyle: true}},
		})
		for _, a := range []manifest.Artifact{
			artifact("s3/object", "s3", "", "s3://bucket/x"), artifact("gcs/object", "gcs", "", "gs://bucket/x"),
			artifact("oracle/object", "oracle", "", "oci://bucket/x"), artifact("front50/pipelineTemplate", "front50ArtifactCredentials", "", "spinnaker://x"),
			artifact("remote/base64", "embedded-artifact", "", "ref://shop/x"),
		} {
			_, err := fetch(t, accounts, a)
			expectError(t, name+" for "+a.Type, err, "", "check the address")
		}
	}
}

func TestTemplatesAreFetchedFromFront50(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "missing"):
			writeNotFound(w, `{"status":404,"error":"Not Found","message":"Could not find pipeline template"}`)
		case r.URL.Query().Get("scopes") == "global":
			fmt.Fprint(w, `[{"id":"a"},{"id":"b"},{"id":"a"}]`)
		default:
			fmt.Fprint(w, r.RequestURI)
		}
	})
	base, _ := url.Parse(server + "/front50")
	accounts := artifacts.New(artifacts.Config{Front50URL: base})
	const account, artifactType = "front50ArtifactCredentials", "front50/pipelineTemplate"
	for reference, want := range map[string]string{
		"spinnaker://t":            "/front50/v2/pipelineTemplates/t",
		"spinnaker://t:latest":     "/front50/v2/pipelineTemplates/t?tag=latest",
		"spinnaker://t@sha256:abc": "/front50/v2/pipelineTemplates/t?digest=abc",
		"spinnaker://a/x":          "/front50/v2/pipelineTemplates/a%2Fx",
	} {
		if got := mustFetch(t, accounts, artifact(artifactType, account, "", reference)); got != want {
			t.Errorf("%s: got %q, want %q", reference, got, want)
		}
	}
	names, err := accounts.Names(t.Context(), account, artifactType)
	if want := []string{"a", "b"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got names %q, %v, want %q", names, err, want)
	}
	_, err = accounts.Versions(t.Context(), account, artifactType, "a")
	expectError(t, "versions", err, "", "not supported")
	_, err = fetch(t, accounts, artifact(artifactType, account, "", "spinnaker://missing"))
	expectError(t, "a missing template", err, vedette.NotFound, "Front50 does not have it")
	_, err = fetch(t, accounts, artifact(artifactType, account, "", "t"))
	expectError(t, "no scheme", err, vedette.Invalid, "starting with spinnaker://")
	for _, reference := range []string{"spinnaker://..", "spinnaker://.", "spinnaker://..:latest", "spinnaker://@sha256:abc", "spinnaker://../x",
		"spinnaker://%2e%2e/x"} {
		_, err = fetch(t, accounts, artifact(artifactType, account, "", reference))
		expectError(t, reference, err, vedette.Invalid, "is not the id of a pipeline template")
	}
}
