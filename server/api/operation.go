package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/middleware"
)

// dispatcher has operations carried out. It returns when an operation has its
// outcome or ctx is over; what changes something goes on to its end then.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// postOperation has one operation carried out, and answers with its outcome.
func (a *api) postOperation(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	if err := checkCrossOrigin(r); err != nil {
		return err
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		writeError(w, http.StatusUnsupportedMediaType, string(vedette.Invalid), "an operation is JSON: send it with the header Content-Type: application/json")
		return nil
	}
	body, err := readBody(w, r)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		writeError(w, http.StatusRequestEntityTooLarge, string(vedette.Invalid), fmt.Sprintf("the operation has more than %d bytes, which no API server would take", tooLarge.Limit))
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

// checkCrossOrigin refuses what a page of another site makes a browser send: whoever runs
// a server on their own machine would otherwise lend it to all that they visit. The
// Content-Type that is asked for, which such a page may not send either, keeps out
// browsers that don't say where a request comes from.
func checkCrossOrigin(r *http.Request) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return vedette.Errorf(vedette.Denied, "the operation was sent by a page of another site: %w", err)
	}
	return nil
}

// maxBodyBytes bounds an operation. API servers take 3 MiB; as text within JSON that
// can be twice as long, and more where it holds many quotes.
const maxBodyBytes = 16 << 20

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the operation did not arrive whole: %w", err)
	}
	// encoding/json would replace what is not UTF-8, and another object be meant.
	if err := textcheck.UTF8(body); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the operation must not contain %w", err)
	}
	return body, nil
}

// probesSecret reports whether an operation tells of a Secret's data whether it is what the
// caller believes.
func probesSecret(args vedette.Args) bool {
	version, ok := args.(vedette.VersionArgs)
	return ok && mask.IsSecretManifest(version.Manifest)
}

// authorizeOperation lets an operation pass whose account is there and that its caller may ask
// for, and notes on whose behalf it is.
func (a *api) authorizeOperation(r *http.Request, op *vedette.Operation) error {
	if a.Dispatch == nil {
		return vedette.Errorf(vedette.Unavailable, "this server carries out no operations")
	}
	access := authorize.Write
	if op.Reads() && !probesSecret(op.Args) {
		access = authorize.Read
	}
	_, err := withInventory(r.Context(), a.inventory, func(i *inventory) (struct{}, error) {
		if _, ok := i.account(op.Account); !ok {
			return struct{}{}, i.accountNotFound(string(op.Account))
		}
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), op.Account, access); err != nil {
		return err
	}
	if op.User, err = headerText(r, "X-Spinnaker-User"); err != nil {
		return err
	}
	op.Origin, err = headerText(r, "X-Vedette-Origin")
	if op.Origin == "" {
		op.Origin = "api"
	}
	return err
}

// maxHeaderText is how long a text about an operation may be, in bytes.
const maxHeaderText = 255

func headerText(r *http.Request, header string) (string, error) {
	text := strings.TrimSpace(r.Header.Get(header))
	if len(text) > maxHeaderText {
		return "", vedette.Errorf(vedette.Invalid, "the header %s has %d bytes, and may have %d", header, len(text), maxHeaderText)
	}
	return text, nil
}
