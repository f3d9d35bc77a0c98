// Package formerchart converts values of the predecessor's Helm chart, agent-k8s-full, into those of Vedette's. Values is the one
// table of what became of each: deploy/helm/generate writes the chart's messages from it.
//
// Nothing that is secret gets into the converted values, because values end in a release's history. It is handed out apart, for
// Secrets.
package formerchart
