package api

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/textproto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/server/api/operations"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/rest"
)

// dispatcher executes operations. Execute returns when the operation has an outcome or ctx
// ends; an operation that changes something continues after ctx ended.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// postOperation executes an operation and writes its outcome.
func (a *api) postOperation(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters.Parse(r); err != nil {
		return err
	}
	if err := rest.CheckOrigin(r); err != nil {
		return err
	}
	// Web pages cannot send this Content-Type, so it also stops browsers that do not send the origin of a request.
	if !isJSON(r) {
		writeError(w, http.StatusUnsupportedMediaType, string(vedette.Invalid),
			"operations must be sent as JSON with the header Content-Type: application/json")
		return nil
	}
	body, err := rest.ReadBody(w, r, "operation", maxBodyBytes)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeError(w, http.StatusRequestEntityTooLarge, string(vedette.Invalid),
			fmt.Sprintf("the operation is larger than the limit of %d bytes", tooLarge.Limit))
		return nil
	}
	if errors.Is(err, middleware.ErrSlowBody) {
		writeError(w, http.StatusRequestTimeout, string(vedette.Invalid), err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	op, err := operations.Parse(body)
	if err != nil {
		return err
	}
	if err := a.authorizeOperation(r, &op); err != nil {
		return err
	}
	outcome, err := a.operations.Run(r.Context(), op)
	if err != nil {
		return err
	}
	return outcome.Write(w)
}

func isJSON(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// maxBodyBytes bounds an operation. API servers accept 3 MiB. As a string in JSON, that can be
// twice as long, or more if it has many quotes.
const maxBodyBytes = 16 << 20

// probesSecret reports whether the outcome of an operation shows if the data of a Secret is
// what the caller believes.
func probesSecret(args vedette.Args) bool {
	version, ok := args.(vedette.VersionArgs)
	return ok && mask.IsSecretManifest(version.Manifest)
}

// authorizeOperation checks that the operation's account exists and that the caller may use
// it. It sets the user and the origin of the operation.
func (a *api) authorizeOperation(r *http.Request, op *vedette.Operation) error {
	if a.Dispatch == nil {
		return vedette.Errorf(vedette.Unavailable, "this server does not execute operations")
	}
	access := authorize.Write
	if op.Reads() && !probesSecret(op.Args) {
		access = authorize.Read
	}
	err := a.checkAccountExists(r.Context(), op.Account)
	if err != nil {
		return err
	}
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), op.Account, access); err != nil {
		return err
	}
	op.Requester = authorize.RequesterOf(r)
	if n := len(op.Requester.Claimed); n > maxHeaderText {
		return vedette.Errorf(vedette.Invalid, "the header X-Spinnaker-User has %d bytes, more than the limit of %d", n, maxHeaderText)
	}
	op.Origin, err = headerText(r, "X-Vedette-Origin")
	if op.Origin == "" {
		op.Origin = "api"
	}
	return err
}

// maxHeaderText is the maximum length of a header about an operation, in bytes.
const maxHeaderText = 255

// headerText returns a header as package authorize reads it: without spaces and tabs around it, but with other
// white space, which belongs to names.
func headerText(r *http.Request, header string) (string, error) {
	text := textproto.TrimString(r.Header.Get(header))
	if len(text) > maxHeaderText {
		return "", vedette.Errorf(vedette.Invalid, "the header %s has %d bytes, more than the limit of %d", header, len(text), maxHeaderText)
	}
	return text, nil
}
