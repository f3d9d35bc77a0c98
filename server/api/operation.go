package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/textproto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/decodelimit"
	"github.com/vedette-io/vedette/server/middleware"
)

// dispatcher executes operations. Execute returns when the operation has an outcome or ctx
// ends; an operation that changes something continues after ctx ended.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// postOperation executes an operation and writes its outcome.
func (a *api) postOperation(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	if err := checkCrossOrigin(r); err != nil {
		return err
	}
	if !isJSON(r) {
		writeError(w, http.StatusUnsupportedMediaType, string(vedette.Invalid),
			"operations must be sent as JSON with the header Content-Type: application/json")
		return nil
	}
	body, err := readBody(w, r)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
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
	op, err := parseOperation(body)
	if err != nil {
		return err
	}
	if err := a.authorizeOperation(r, &op); err != nil {
		return err
	}
	view, err := a.execute(r.Context(), op)
	if err != nil {
		return err
	}
	return view.write(w)
}

func isJSON(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// checkCrossOrigin rejects cross-origin requests of browsers, because any web page could
// otherwise use a server on the machine of its visitor. The required Content-Type also stops
// browsers that do not send the origin of a request, because web pages cannot send it either.
func checkCrossOrigin(r *http.Request) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return vedette.Errorf(vedette.Denied, "cross-origin requests are rejected: %w", err)
	}
	return nil
}

// maxBodyBytes bounds an operation. API servers accept 3 MiB. As a string in JSON, that can be
// twice as long, or more if it has many quotes.
const maxBodyBytes = 16 << 20

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the operation: %w", err)
	}
	// encoding/json would silently replace invalid UTF-8, and the operation would mean another
	// object.
	if err := textcheck.UTF8(body); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the operation must not contain %w", err)
	}
	return body, decodelimit.Reserve(r.Context(), body)
}

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
	op.User, err = headerText(r, "X-Spinnaker-User")
	if err != nil {
		return err
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
