// Package logs opens the logs of a pod's containers: one, all of them one after the other, or all at once while they are written.
package logs
