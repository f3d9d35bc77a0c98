// Package notfound tells the 404 with which a service says that it does not have something from any other 404: that of a gateway whose
// backend is gone, or of another server at a wrong address. These must not make something look deleted.
// docs/decisions/0169 has the reasons.
package notfound

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// Rule reports whether the body of a 404 is what a service sends for something that it does not have.
type Rule func(body []byte) bool

// MaxBytes is more than a service sends with a 404.
const MaxBytes = 64 << 10

// Read returns the beginning of a body. What breaks off meets no rule, so that the error is ignored.
func Read(body io.Reader) []byte {
	text, _ := io.ReadAll(io.LimitReader(body, MaxBytes))
	return text
}

// Hint says what any other 404 means. It follows what answered.
const Hint = "but not as the service does for something that it does not have: check the address, the names in the configuration, and proxies"

// Spring is the rule for Spinnaker's services: their errors repeat the status.
func Spring(body []byte) bool { return SpringStatus(body, http.StatusNotFound) }

// SpringStatus is the same for other statuses with which such a service says that it does not have a path or a method.
func SpringStatus(body []byte, status int) bool {
	var e struct {
		Status int `json:"status"`
	}
	return decode(body, &e) && e.Status == status
}

// S3 is the rule for an object of S3, or of a service with the same API, whose bucket a user has named.
func S3(body []byte) bool { return S3Object(body) || s3Code(body) == "NoSuchBucket" }

// S3Object is the rule for an object in a bucket that is known to exist.
func S3Object(body []byte) bool {
	return slices.Contains([]string{"NoSuchKey", "NoSuchVersion"}, s3Code(body))
}

func s3Code(body []byte) string {
	var e struct {
		XMLName xml.Name
		Code    string `xml:"Code"`
	}
	if err := xml.Unmarshal(body, &e); err != nil || e.XMLName.Local != "Error" {
		return ""
	}
	return e.Code
}

// GCS is the rule for the content of an object of Google Cloud Storage. Requests for contents are answered with a text, all others with
// JSON.
func GCS(body []byte) bool {
	text := string(bytes.TrimSpace(body))
	if strings.HasPrefix(text, "No such object") || strings.HasPrefix(text, "The specified bucket does not exist") {
		return true
	}
	var e struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	return decode(body, &e) && e.Error.Code == http.StatusNotFound
}

// Oracle is the rule for an object of Oracle's Object Storage.
func Oracle(body []byte) bool {
	var e struct {
		Code string `json:"code"`
	}
	codes := []string{"ObjectNotFound", "BucketNotFound", "NamespaceNotFound", "NotAuthorizedOrNotFound"}
	return decode(body, &e) && slices.Contains(codes, e.Code)
}

// Kubernetes is the rule for an object of an API server, which answers with a Status.
func Kubernetes(body []byte) bool {
	var e struct {
		Kind string `json:"kind"`
		Code int    `json:"code"`
	}
	return decode(body, &e) && e.Kind == "Status" && e.Code == http.StatusNotFound
}

func decode(body []byte, into any) bool {
	return exactjson.Unmarshal(body, into, exactjson.Limits{}) == nil
}
