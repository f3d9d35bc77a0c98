// Package writetest has the tests of package write that all databases must pass, so that they behave the same.
package writetest
