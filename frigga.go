package vedette

import (
	"strconv"
	"strings"
)

// parseFrigga parses app-stack-detail-v003 as Netflix's library Frigga does. The cluster is
// everything but the sequence. Stack and detail are not read, because Clouddriver does not
// use them. A name with other characters than letters, digits and "-._" has no parts at all,
// except that Kubernetes' own names ("system:node") belong to the application "system".
func parseFrigga(name string) Moniker {
	cluster, sequence := cutSequence(name)
	if strings.HasPrefix(name, "system:") {
		return Moniker{App: "system", Cluster: cluster, Sequence: sequence}
	}
	app, _, _ := strings.Cut(cluster, "-")
	if app == "" || strings.ContainsFunc(cluster, isForeignToFrigga) {
		return Moniker{}
	}
	return Moniker{App: app, Cluster: cluster, Sequence: sequence}
}

func isForeignToFrigga(r rune) bool {
	isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !isLetter && !isDigit(r) && !strings.ContainsRune("-._", r)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// cutSequence removes a trailing "-v003" from a name. Frigga takes three to six digits.
func cutSequence(name string) (string, *int) {
	i := strings.LastIndex(name, "-v")
	if i < 0 {
		return name, nil
	}
	digits := name[i+len("-v"):]
	if len(digits) < 3 || len(digits) > 6 || strings.ContainsFunc(digits, func(r rune) bool { return !isDigit(r) }) {
		return name, nil
	}
	sequence, err := strconv.Atoi(digits)
	if err != nil {
		return name, nil
	}
	return name[:i], &sequence
}
