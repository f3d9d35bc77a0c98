package cloudtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// AWS is STS and the agent of EKS Pod Identity.
type AWS struct {
	WebIdentityToken string // of the pod
	RoleARN          string // that it may assume
	ClusterRoleARN   string // that RoleARN may assume
	ExternalID       string // for ClusterRoleARN
	PodToken         string // of the pod, for Pod Identity
	AccessKeyID      string // of a user with RoleARN's rights
	SecretAccessKey  string
	Lifetime         time.Duration // of what is issued

	mu     sync.Mutex
	issued map[string]keys // by access key
}

type keys struct {
	secret, session, arn string
	until                time.Time
}

func (a *AWS) init() {
	a.WebIdentityToken, a.RoleARN = "header.web-identity-secret.signature", "arn:aws:iam::111122223333:role/agent"
	a.ClusterRoleARN, a.ExternalID = "arn:aws:iam::444455556666:role/cluster", "external-secret"
	a.PodToken = "pod-identity-secret"
	a.AccessKeyID, a.SecretAccessKey = "AKIAUSER", "user-secret-access-key"
	a.Lifetime = time.Hour
	a.issued = map[string]keys{a.AccessKeyID: {secret: a.SecretAccessKey, arn: a.RoleARN, until: time.Now().Add(1000 * time.Hour)}}
}

// issue returns new temporary keys.
func (a *AWS) issue(arn string) (id string, k keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.issued)
	id = fmt.Sprintf("ASIA%d", n)
	k = keys{fmt.Sprintf("temporary-secret-access-key-%d", n), fmt.Sprintf("session-secret-token-%d", n), arn, time.Now().Add(a.Lifetime)}
	a.issued[id] = k
	return id, k
}

func (a *AWS) find(id string) (keys, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.issued[id]
	return k, ok
}

func (a *AWS) servePodIdentity(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != a.PodToken {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"code": "AccessDeniedException",
			"message": "no association for the service account; got " + r.Header.Get("Authorization")})
		return
	}
	id, k := a.issue(a.RoleARN)
	_ = json.NewEncoder(w).Encode(map[string]string{"AccessKeyId": id, "SecretAccessKey": k.secret, "Token": k.session,
		"AccountId": "111122223333", "Expiration": k.until.UTC().Format(time.RFC3339)})
}

func (a *AWS) serveSTS(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	action := r.Form.Get("Action")
	var arn string
	switch action {
	case "AssumeRoleWithWebIdentity":
		if r.Form.Get("WebIdentityToken") != a.WebIdentityToken {
			stsError(w, http.StatusBadRequest, "InvalidIdentityToken", "Couldn't verify "+r.Form.Get("WebIdentityToken"))
			return
		}
		if r.Form.Get("RoleArn") == a.RoleARN {
			arn = a.RoleARN
		}
	case "AssumeRole":
		_, id, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		id, _, _ = strings.Cut(id, "/")
		k, _ := a.find(id)
		isAgent := k.arn == a.RoleARN && r.Header.Get("X-Amz-Security-Token") == k.session
		if isAgent && r.Form.Get("RoleArn") == a.ClusterRoleARN && r.Form.Get("ExternalId") == a.ExternalID {
			arn = a.ClusterRoleARN
		}
	case "GetCallerIdentity":
		if arn = a.verify(r); arn == "" {
			stsError(w, http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match")
			return
		}
		answer(w, "GetCallerIdentity", struct{ Arn string }{arn})
		return
	}
	if arn == "" {
		stsError(w, http.StatusForbidden, "AccessDenied", "Not authorized to perform sts:"+action)
		return
	}
	id, k := a.issue(arn)
	type credentials struct{ AccessKeyId, SecretAccessKey, SessionToken, Expiration string }
	answer(w, action, struct{ Credentials credentials }{credentials{id, k.secret, k.session, k.until.UTC().Format(time.RFC3339)}})
}

// answer writes an answer of STS.
func answer(w http.ResponseWriter, action string, result any) {
	fmt.Fprintf(w, `<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">`, action)
	_ = xml.NewEncoder(w).EncodeElement(result, xml.StartElement{Name: xml.Name{Local: action + "Result"}})
	fmt.Fprintf(w, `</%sResponse>`, action)
}

func stsError(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>`,
		code, message)
}

// maxAge is for how long STS accepts a signature.
const maxAge = 15 * time.Minute

// verify returns who has presigned a request: its signature is computed anew.
func (a *AWS) verify(r *http.Request) (arn string) {
	q := r.URL.Query()
	id, _, _ := strings.Cut(q.Get("X-Amz-Credential"), "/")
	k, ok := a.find(id)
	signedAt, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	age := time.Since(signedAt)
	if !ok || err != nil || age > maxAge || age < -5*time.Minute || time.Now().After(k.until) {
		return ""
	}
	expected := r.Clone(r.Context())
	for _, name := range []string{"Algorithm", "Credential", "Date", "Security-Token", "SignedHeaders", "Signature"} {
		q.Del("X-Amz-" + name)
	}
	expected.URL = &url.URL{Scheme: "https", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
	expected.Header = http.Header{"X-K8s-Aws-Id": r.Header.Values("X-K8s-Aws-Id")}
	const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	signer := aws.Credentials{AccessKeyID: id, SecretAccessKey: k.secret, SessionToken: k.session}
	uri, _, err := v4.NewSigner().PresignHTTP(r.Context(), signer, expected, emptyHash, "sts", "eu-west-1", signedAt)
	if err != nil {
		return ""
	}
	u, err := url.Parse(uri)
	if err != nil || u.Query().Get("X-Amz-Signature") != r.URL.Query().Get("X-Amz-Signature") {
		return ""
	}
	return k.arn
}

// userOf returns whose a token of EKS is, as its authenticator finds out; empty if it is not valid.
func (a *AWS) userOf(ctx context.Context, services http.RoundTripper, cluster, token string) string {
	encoded, isEKS := strings.CutPrefix(token, "k8s-aws-v1.")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || !isEKS {
		return ""
	}
	u, err := url.Parse(string(decoded))
	if err != nil || u.Scheme != "https" || u.Host != HostSTS || u.Path != "/" || u.Query().Get("Action") != "GetCallerIdentity" ||
		u.Query().Get("X-Amz-SignedHeaders") != "host;x-k8s-aws-id" || u.Query().Get("X-Amz-Expires") == "" {
		return ""
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return ""
	}
	r.Header.Set("X-K8s-Aws-Id", cluster)
	resp, err := services.RoundTrip(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var identity struct {
		Result struct{ Arn string } `xml:"GetCallerIdentityResult"`
	}
	if err := xml.NewDecoder(resp.Body).Decode(&identity); err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return identity.Result.Arn
}
