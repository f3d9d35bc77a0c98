// Package historytest has the tests of package history that all databases must pass, so that they behave the same.
package historytest
