package keypair

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"
)

// Use is what the files of one certificate or one set of authorities are for. A program that reads such files again
// keeps the last ones that it could use, so nobody would notice before these expire.
type Use struct {
	Name    string // the key of the configuration
	KeyPair Files  // the zero value for none
	CAFile  string // "" for none
}

// UseState is what the files of a use contain now.
type UseState struct {
	Use
	Problem error     // why they cannot be used; nil if they can
	Expiry  time.Time // end of the certificate; zero if there is none, or it cannot be read
}

// State reads the files.
func (u Use) State() UseState {
	s := UseState{Use: u}
	if u.KeyPair.Cert != "" {
		var cert *tls.Certificate
		if cert, s.Problem = load(u.KeyPair); s.Problem == nil {
			s.Expiry = cert.Leaf.NotAfter
		}
	}
	if s.Problem == nil && u.CAFile != "" {
		_, s.Problem = LoadCertPool(u.CAFile)
	}
	return s
}

// watchInterval is how often files are read. It is a few handshakes' worth of work.
const watchInterval = 30 * time.Second

// Watch reads the files of uses at intervals until ctx ends, logs what has changed, and calls report each time.
func Watch(ctx context.Context, uses []Use, log *slog.Logger, report func([]UseState)) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	logged := map[string]string{}
	for {
		states := make([]UseState, len(uses))
		for i, use := range uses {
			states[i] = use.State()
			logProblem(log, logged, states[i])
		}
		report(states)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// logProblem logs a problem when it begins, changes or ends.
func logProblem(log *slog.Logger, logged map[string]string, s UseState) {
	text := ""
	if s.Problem != nil {
		text = s.Problem.Error()
	}
	switch {
	case text == logged[s.Name]:
		return
	case text == "":
		log.Info("certificate files can be used again", "use", s.Name)
	default:
		log.Warn("certificate files cannot be used, keeping the old ones", "use", s.Name, "error", s.Problem)
	}
	logged[s.Name] = text
}

// Describe says what is wrong with a use, for users.
func (s UseState) Describe() string {
	if s.Problem == nil {
		return ""
	}
	return fmt.Sprintf("%s: %v: the certificates from before stay in use until they expire", s.Name, s.Problem)
}
