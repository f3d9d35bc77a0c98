package discover

import (
	"errors"
	"net/http"
)

// step is what is done next.
type step int

const (
	stepChoose step = iota // what to watch
	stepList
	stepWatch
)

// maxWatchFailures is after how many watches in a row that end early a list begins anew: an API server may keep refusing a resourceVersion
// that it has never had, for example after its database was restored.
const maxWatchFailures = 3

// plan decides what is done after what has happened. It does no I/O and reads no clock. The zero value chooses first.
//
//	choose -> list -> watch -> watch ...
//	  ^        |  ^     |
//	  +--------+  +-----+  410 Gone, or the third watch in a row that ends early
//	  +-----------------+  403 Forbidden, 404 Not Found
type plan struct {
	resource         *resource
	version          string // to watch from; empty before a list
	slicesAreMissing bool
	watchFailures    int
}

func (p *plan) next() step {
	switch {
	case p.resource == nil:
		return stepChoose
	case p.version == "":
		return stepList
	}
	return stepWatch
}

func (p *plan) chosen(r *resource) { p.resource, p.version = r, "" }

func (p *plan) listed(version string) { p.version, p.watchFailures = version, 0 }

// watched says how a watch ended: in front of which version, and whether it had lasted.
func (p *plan) watched(version string, lasted bool, err error) {
	p.version = version
	p.watchFailures++
	if lasted {
		p.watchFailures = 0
	}
	if p.watchFailures >= maxWatchFailures {
		p.version, p.watchFailures = "", 0
	}
	if err != nil {
		p.failed(err)
	}
}

// failed says why a step failed. What it does not change is tried again.
func (p *plan) failed(err error) {
	switch status := statusOf(err); {
	case status == http.StatusGone || errors.Is(err, errGone):
		p.version = ""
	case status == http.StatusNotFound && p.next() == stepList && p.resource == sliceResource:
		p.slicesAreMissing = true
		p.chosen(nil)
	case status == http.StatusForbidden, status == http.StatusNotFound:
		p.slicesAreMissing = false // the cluster may have been upgraded
		p.chosen(nil)
	}
}

// errGone is a watch's event that the version to watch from is too old.
var errGone = errors.New("the API server no longer has the changes since then")
