// Package docs holds the documentation to the code, by its tests.
package docs
