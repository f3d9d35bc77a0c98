// Package registrytest has the tests of package registry that all databases must pass, so that they behave the same.
package registrytest
