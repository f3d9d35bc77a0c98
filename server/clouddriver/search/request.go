package search

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
)

type searchRequest struct {
	query    string // as in the request
	text     string // the query in lower case, as keys are searched for it
	types    map[string]bool
	platform string
	page     int
	pageSize int
}

// The types of results that are not objects.
const (
	applicationType = "applications"
	clusterType     = "clusters"
	projectType     = "projects"
)

const (
	// maxSearchText is longer than any key, so that a longer query is a mistake or an attack.
	maxSearchText  = 2048
	maxSearchTypes = 4096
	// defaultPageSize is also the maximum, so that one answer has a bounded size.
	defaultPageSize = 10_000
)

// parseSearch reads the parameters of SearchController.search. Others are filters, which Clouddriver
// ignores for Kubernetes.
func parseSearch(values url.Values) (searchRequest, error) {
	s := searchRequest{query: values.Get("q"), platform: values.Get("platform")}
	if len(s.query) > maxSearchText {
		return s, vedette.Errorf(vedette.Invalid, "the query q has %d bytes: no name has more than %d", len(s.query), maxSearchText)
	}
	if _, err := web.RequiredParam(values, "type"); err != nil {
		return s, err
	}
	if n := len(strings.Join(values["type"], ",")); n > maxSearchTypes {
		return s, vedette.Errorf(vedette.Invalid, "the types have %d bytes: the names of all types together have fewer than %d", n, maxSearchTypes)
	}
	page, pageErr := integerParameter(values, "page", 1)
	pageSize, sizeErr := integerParameter(values, "pageSize", defaultPageSize)
	for _, err := range []error{pageErr, sizeErr} {
		if err != nil {
			return s, err
		}
	}
	s.text = strings.ToLower(s.query)
	s.types = searchedTypes(values["type"])
	s.page = page
	s.pageSize = pageSize
	return s, nil
}

func integerParameter(values url.Values, name string, fallback int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, vedette.Errorf(vedette.Invalid, "the parameter %s is %.100q, which is not a number up to %d", name, text, math.MaxInt32)
	}
	return int(n), nil
}

// searchedTypes returns the kinds and types to search. A spinnakerKind stands for its kinds, except
// "unclassified". Types that Clouddriver does not search are left out. Without any type, all of
// Clouddriver's kinds are searched.
func searchedTypes(parameters []string) map[string]bool {
	if len(parameters) == 1 { // like Spring, which splits a parameter only if it is alone
		parameters = slices.DeleteFunc(strings.Split(parameters[0], ","), func(s string) bool { return s == "" })
	}
	kinds, types := manifest.SpinnakerKinds(), map[string]bool{}
	for kind, spinnakerKind := range kinds {
		isType := func(parameter string) bool {
			return kind == parameter || strings.EqualFold(spinnakerKind, parameter) && spinnakerKind != manifest.Unclassified
		}
		if len(parameters) == 0 || slices.ContainsFunc(parameters, isType) {
			types[kind] = true
		}
	}
	for _, name := range []string{applicationType, clusterType, projectType} {
		if slices.Contains(parameters, name) {
			types[name] = true
		}
	}
	return types
}

// window returns the results that the page shows: how many to skip and how many to take. A page
// that does not exist takes none.
func (s searchRequest) window() (skip int64, take int) {
	size := min(s.pageSize, defaultPageSize)
	if s.page < 1 || size < 1 || s.platform != "" && s.platform != kubernetesPlatform {
		return 0, 0
	}
	return int64(s.page-1) * int64(size), size
}

const (
	kubernetesPlatform = "kubernetes"
	front50Platform    = "front50" // of projects
)

// resultPlatform is that of the request if one provider answers it. Otherwise Clouddriver merges the
// results of several providers, and calls them "aws".
func (s searchRequest) resultPlatform() string {
	if s.platform == kubernetesPlatform || s.platform == front50Platform {
		return s.platform
	}
	return "aws"
}
