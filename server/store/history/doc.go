// Package history stores operations, how they ended, and what they changed.
package history
