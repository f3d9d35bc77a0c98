// Package readtest has the tests of package read that all databases must pass, so that they behave the same.
package readtest
