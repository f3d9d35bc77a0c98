package upstream

import (
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/task"
	"github.com/vedette-io/vedette/server/upstream/merging"
)

// serveByBody decides by the account that the body names. This server answers a request without one.
func (h *Handler) serveByBody(w http.ResponseWriter, r *http.Request) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	account := string(task.Request{Description: raw}.Account())
	if account == "" {
		h.local.ServeHTTP(w, r)
		return nil
	}
	return h.serveByAccount(w, r, account)
}

// artifactRef is the part of an artifact that decides who fetches it.
type artifactRef struct {
	Type            string `json:"type"`
	ArtifactAccount string `json:"artifactAccount"`
}

// serveArtifact decides by the artifact account, which the path or the body names. An artifact that
// names none is answered by this server.
func (h *Handler) serveArtifact(w http.ResponseWriter, r *http.Request, account string) error {
	ref := artifactRef{ArtifactAccount: account, Type: strings.Join(r.URL.Query()["type"], ",")} // as Spring joins them
	if r.Method == http.MethodPut {
		raw, err := readBody(w, r)
		if err != nil {
			return err
		}
		if err := exactjson.Unmarshal(raw, &ref, exactjson.Limits{}); err != nil {
			ref = artifactRef{} // package clouddriver reports what is wrong
		}
	}
	if ref.ArtifactAccount == "" || h.isLocalArtifact(r, ref) {
		h.local.ServeHTTP(w, r)
		return nil
	}
	return h.forward(w, r)
}

// isLocalArtifact reports whether this server has the account for an artifact.
func (h *Handler) isLocalArtifact(r *http.Request, ref artifactRef) bool {
	answer := h.askLocal(r, "/artifacts/credentials")
	var accounts []merging.ArtifactAccount
	if answer.status != http.StatusOK || exactjson.Unmarshal(answer.body, &accounts, exactjson.Limits{}) != nil {
		return false
	}
	return slices.ContainsFunc(accounts, func(a merging.ArtifactAccount) bool {
		return a.Name == ref.ArtifactAccount && (ref.Type == "" || slices.Contains(a.Types, ref.Type))
	})
}
