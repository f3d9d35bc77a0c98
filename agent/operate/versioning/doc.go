// Package versioning decides which version of its series a manifest becomes, for example of a ConfigMap or a Secret, by the rules
// of Clouddriver: the version of an object that was made from the same manifest, or else the one
// after the highest.
//
// It sends no requests, except through the function that the caller passes to read a ConfigMap.
// Memory that may hold the data of a Secret is cleared after use.
package versioning
