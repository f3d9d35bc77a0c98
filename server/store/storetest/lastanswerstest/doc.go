// Package lastanswerstest has the tests of package lastanswers that all databases must pass, so that they behave the same.
package lastanswerstest
