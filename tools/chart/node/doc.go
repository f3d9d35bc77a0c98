// Package node installs the Helm chart on a real node, with the images that tools/release builds, and tries there what no API server
// alone can show: Pods, their volumes, NetworkPolicies, upgrades under load. It is a module of its own, because Helm's command must
// not be in ours.
package node
