// Package tasks stores Clouddriver's tasks.
package tasks
