// Package authorizetest checks that every route of a REST API asks for the
// permissions that it needs.
package authorizetest

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
)

// Authorizer records the permissions that it is asked for, and grants all but one, or knows none.
type Authorizer struct {
	denied    string
	isUnknown bool // as if Fiat did not answer

	mu      sync.Mutex
	checked map[string]bool
}

func newAuthorizer(denied string) *Authorizer {
	return &Authorizer{denied: denied, checked: map[string]bool{}}
}

// Denied returns the permission that is denied; empty if all are granted.
func (a *Authorizer) Denied() string { return a.denied }

func (a *Authorizer) check(permission string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checked[permission] = true
	if a.isUnknown {
		return errUnknown
	}
	if permission == a.denied {
		return vedette.Errorf(vedette.Denied, "Access is denied")
	}
	return nil
}

var errUnknown = vedette.Errorf(vedette.Unavailable, "the permissions cannot be looked up now")

// CheckAccount records "prod READ".
func (a *Authorizer) CheckAccount(_ context.Context, _ authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	return a.check(string(account) + " " + string(access))
}

// CheckApplication records "application web READ".
func (a *Authorizer) CheckApplication(_ context.Context, _ authorize.Caller, application string, access authorize.Access) error {
	return a.check("application " + application + " " + string(access))
}

// Readable returns a filter that records "prod READ" for each account.
func (a *Authorizer) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	if a.isUnknown {
		return nil, errUnknown
	}
	return func(account vedette.AccountName) bool { return a.check(string(account)+" READ") == nil }, nil
}

// ReadableApplications returns a filter that records "application web READ" for each application.
func (a *Authorizer) ReadableApplications(context.Context, authorize.Caller) (func(string) bool, error) {
	if a.isUnknown {
		return nil, errUnknown
	}
	return func(application string) bool { return a.check("application "+application+" READ") == nil }, nil
}

func (a *Authorizer) permissions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.checked))
}

// Route is a request to a route, and the permissions that the route must ask for.
type Route struct {
	Path, Body string
	Code       int // of the answer if everything is granted; 0 means 200
	// Permissions are sorted. There must be some, or Open must be set, because a
	// route must not become open by a field that is left out.
	Permissions []string
	Open        bool
	// FilteredText is a text that the answer leaves out without the permission. If it
	// is empty, the route rejects the request instead.
	FilteredText string
	// Hides is set if the route answers without the permission as if nothing existed: 404.
	Hides bool
	// Rejecting are those of the Permissions without which the route rejects the request
	// although it filters by the others.
	Rejecting []string
}

// Response is what a route answered.
type Response struct {
	Code int
	Body string
}

// CheckRoutes sends a request to each route of an API. It fails if a route has no
// entry in table, asks for other permissions than its entry lists, answers though
// a permission is denied, or does not say that permissions cannot be looked up now.
// send gets the pattern of a route, for example "GET health", and returns the entry
// too, because a path can name something that send creates.
func CheckRoutes(t *testing.T, routes []string, table map[string]Route,
	send func(t *testing.T, pattern string, a *Authorizer) (Response, Route)) {
	slices.Sort(routes)
	if got := slices.Sorted(maps.Keys(table)); !slices.Equal(got, routes) {
		t.Fatalf("the table of permissions lists other routes than the API has:\n got %q\nwant %q", got, routes)
	}
	for _, pattern := range routes {
		t.Run(pattern, func(t *testing.T) {
			a := newAuthorizer("")
			response, route := send(t, pattern, a)
			if route.Open != (len(route.Permissions) == 0) {
				t.Fatalf("got Open %v with the permissions %q, want one of the two", route.Open, route.Permissions)
			}
			if want := cmp.Or(route.Code, http.StatusOK); response.Code != want || !strings.Contains(response.Body, route.FilteredText) {
				t.Errorf("with all permissions: got %d %s, want %d and %q", response.Code, response.Body, want, route.FilteredText)
			}
			if got := a.permissions(); !slices.Equal(got, route.Permissions) {
				t.Errorf("permissions: got %q, want %q", got, route.Permissions)
			}
			for _, permission := range route.Permissions {
				response, route := send(t, pattern, newAuthorizer(permission))
				route.checkDenied(t, permission, response)
			}
			if route.Open {
				return
			}
			unknown := newAuthorizer("")
			unknown.isUnknown = true
			response, _ = send(t, pattern, unknown)
			if response.Code != http.StatusServiceUnavailable || !strings.Contains(response.Body, errUnknown.Error()) {
				t.Errorf("with unknown permissions: got %d %s, want 503", response.Code, response.Body)
			}
		})
	}
}

func (route Route) checkDenied(t *testing.T, permission string, response Response) {
	t.Helper()
	if route.FilteredText != "" && !slices.Contains(route.Rejecting, permission) {
		if response.Code != http.StatusOK || strings.Contains(response.Body, route.FilteredText) {
			t.Errorf("without %s: got %d %s, want 200 without %q", permission, response.Code, response.Body, route.FilteredText)
		}
		return
	}
	if route.Hides {
		if response.Code != http.StatusNotFound {
			t.Errorf("without %s: got %d %s, want 404", permission, response.Code, response.Body)
		}
		return
	}
	// Clouddriver answers operations of accounts that the caller may not use with 400.
	isInvalid := response.Code == http.StatusBadRequest && strings.Contains(response.Body, "Access denied to account")
	if response.Code != http.StatusForbidden && !isInvalid {
		t.Errorf("without %s: got %d %s, want 403", permission, response.Code, response.Body)
	}
}
