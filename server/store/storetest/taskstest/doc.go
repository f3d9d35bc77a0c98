// Package taskstest has the tests of package tasks that all databases must pass, so that they behave the same.
package taskstest
