// Package artifact decides which version of a Spinnaker artifact a manifest becomes, by the rules
// of Clouddriver: the version of an object that was made from the same manifest, or else the one
// after the highest.
//
// It sends no requests, except through the function that the caller passes to read a ConfigMap.
// Memory that may hold the data of a Secret is cleared after use.
package artifact
