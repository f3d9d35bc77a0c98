package vedette

import "log/slog"

// Requester is who requested an operation. What was proven and what was claimed are kept apart: a claim
// never takes the place of a proof.
type Requester struct {
	// User is who it was, and is never empty in the history: the proven name, or else the claimed one, or
	// else "anonymous". If a trusted service passed the request on, it is the user that the service names.
	User string
	// Claimed is the user that the request names. Only a trusted service is believed.
	Claimed string
	// Proven is what the connection or a token proves: "certificate CN=ann,O=shop" or "token server.adminToken".
	// Empty if it proves nothing.
	Proven string
	// Service is what passed the request on for the user, by its certificate if it is a trusted one, and else as
	// its headers tell it: "orca", "gate". Empty if the user sent it.
	Service string
	Address string // where the connection came from
}

// Clean returns texts that can be stored and shown, of at most limit bytes each.
func (q Requester) Clean(limit int) Requester {
	for _, text := range []*string{&q.User, &q.Claimed, &q.Proven, &q.Service, &q.Address} {
		*text = CleanText(*text, limit)
	}
	if q.User == "" {
		q.User = "anonymous"
	}
	return q
}

// LogValue returns what is known, for logs.
func (q Requester) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, f := range []struct{ name, value string }{
		{"user", q.User}, {"claimed", q.Claimed}, {"proven", q.Proven}, {"service", q.Service}, {"address", q.Address},
	} {
		if f.value != "" {
			attrs = append(attrs, slog.String(f.name, f.value))
		}
	}
	return slog.GroupValue(attrs...)
}
