package upstream

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// viaHeader names the servers that passed on a request, as RFC 9110 defines it.
const viaHeader = "Via"

// viaPrefix begins the names under which our servers appear in viaHeader.
const viaPrefix = "vedette-"

// maxHops bounds how many of our servers may pass on one request. Several servers of one
// installation have one address, so a loop can go through any of them.
const maxHops = 3

// loopGuard detects requests that come back to the server that passed them on.
type loopGuard struct{ name string }

func newLoopGuard() loopGuard { return loopGuard{viaPrefix + strings.ToLower(rand.Text()[:12])} }

// check returns an error if a request has been here already, or at too many of our servers.
func (g loopGuard) check(header http.Header) error {
	hops := 0
	for _, hop := range viaHops(header) {
		if hop == g.name {
			hops = maxHops
		}
		if strings.HasPrefix(hop, viaPrefix) {
			hops++
		}
	}
	if hops < maxHops {
		return nil
	}
	return vedette.Errorf(vedette.Unavailable, "upstream.baseUrl of this server leads back to the server itself: "+
		"set it to the address of the Clouddriver that was there before, not to that under which Spinnaker reaches this server")
}

// isOfServer reports whether one of our servers passed on a request.
func isOfServer(header http.Header) bool {
	return slices.ContainsFunc(viaHops(header), func(hop string) bool { return strings.HasPrefix(hop, viaPrefix) })
}

// viaHops returns the receivers in the header, without protocol and comment.
func viaHops(header http.Header) []string {
	var hops []string
	for _, value := range header.Values(viaHeader) {
		for hop := range strings.SplitSeq(value, ",") {
			if fields := strings.Fields(hop); len(fields) >= 2 {
				hops = append(hops, fields[1])
			}
		}
	}
	return hops
}

// mark adds this server to a request that it passes on.
func (g loopGuard) mark(header http.Header) { header.Add(viaHeader, "1.1 "+g.name) }
