package configreload

import (
	"net/http"
	"time"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Path is where programs serve their configuration, for operators only.
const Path = "/config"

// Status says which configuration is in effect.
type Status struct {
	Since time.Time `json:"since"`           // when it took effect
	Files []string  `json:"files,omitempty"` // from which it was read
	Error string    `json:"error,omitempty"` // why the files as they are now are not in effect
	// RejectedAccounts are the accounts that are invalid in the files. RestartKeys are the keys whose
	// changes count from the next start on.
	RejectedAccounts []string `json:"rejectedAccounts,omitempty"`
	RestartKeys      []string `json:"restartKeys,omitempty"`
	// PublicError is Error without values of the configuration, for readers who must not see them.
	PublicError string `json:"-"`
}

// Effective is what is in effect in a running program.
type Effective struct {
	Status
	Name     string                `json:"name"` // of the agent or server
	Settings []configfile.KeyValue `json:"settings"`
}

// Handler serves what is in effect to operators.
func Handler(guard admin.Guard, effective func() Effective) http.Handler {
	return guard.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		admin.WriteJSON(w, http.StatusOK, effective())
	}))
}
