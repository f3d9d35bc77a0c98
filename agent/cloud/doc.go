// Package cloud gets tokens for clusters of EKS, GKE and AKS by the libraries of the clouds, without their command-line programs,
// which the agent's image does not have:
//
//   - EKS: a presigned request to STS, which the API server sends to learn who asks;
//   - GKE: an access token of Google;
//   - AKS: an access token of Entra ID.
//
// A [Source] belongs to one cluster. It comes from an account's settings ([Cluster]), or from a kubeconfig that runs one of the
// programs ([FromExec]). It keeps neither tokens nor what they are issued for: agent/kube/credentials keeps tokens until they expire,
// and files and variables are read again for each. Only tokens of Azure's managed identities are kept by a library, as the metadata service
// itself keeps them.
//
// Token services are asked at the addresses that their libraries know, that the environment names, or that the operator's files name,
// and never at one that an answer names: redirects are errors. Whatever they answer, an error of a Source names the cloud, the
// service and what to do, and contains nothing that was sent or issued.
package cloud
