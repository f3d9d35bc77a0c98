package upstream

import (
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/task"
)

// serveByBody decides by the account that the body names. A request without one is own.
func (h *Handler) serveByBody(w http.ResponseWriter, r *http.Request) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	account := string(task.Request{Description: raw}.Account())
	if account == "" {
		h.own.ServeHTTP(w, r)
		return nil
	}
	return h.serveByAccount(w, r, account)
}

// artifactRef is the part of an artifact that decides who fetches it.
type artifactRef struct {
	Type            string `json:"type"`
	ArtifactAccount string `json:"artifactAccount"`
}

// artifactAccount is an entry of artifacts/credentials.
type artifactAccount struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
}

// supports reports whether the account can be used for an artifact. An empty type means any.
func (a artifactAccount) supports(ref artifactRef) bool {
	return a.Name == ref.ArtifactAccount && (ref.Type == "" || slices.Contains(a.Types, ref.Type))
}

// serveArtifact decides by the artifact account, which the path or the body names. An artifact that
// names none is own.
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
	if ref.ArtifactAccount == "" || h.isOwnArtifact(r, ref) {
		h.own.ServeHTTP(w, r)
		return nil
	}
	return h.forward(w, r)
}

// isOwnArtifact reports whether this server has the account for an artifact.
func (h *Handler) isOwnArtifact(r *http.Request, ref artifactRef) bool {
	answer := h.askOwn(r, "/artifacts/credentials")
	var accounts []artifactAccount
	if answer.status != http.StatusOK || exactjson.Unmarshal(answer.body, &accounts, exactjson.Limits{}) != nil {
		return false
	}
	return slices.ContainsFunc(accounts, func(a artifactAccount) bool { return a.supports(ref) })
}
