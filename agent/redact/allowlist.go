package redact

import "strings"

// allowedAnnotationPrefixes begin the names of the annotations by which Spinnaker groups, versions
// and routes.
var allowedAnnotationPrefixes = []string{"artifact.spinnaker.io/", "caching.spinnaker.io/", "moniker.spinnaker.io/", "strategy.spinnaker.io/", "traffic.spinnaker.io/"}

// allowedAnnotations are further annotations that a Secret keeps. Each holds names,
// switches or numbers by the definition of those who write it. Not among them are
// those with a digest of the data, which can be guessed from, and
// kubernetes.io/change-cause, which may hold a whole command line.
var allowedAnnotations = map[string]bool{
	"kubernetes.io/service-account.name": true, "kubernetes.io/service-account.uid": true,
	"meta.helm.sh/release-name": true, "meta.helm.sh/release-namespace": true,
	"helm.sh/hook": true, "helm.sh/hook-weight": true, "helm.sh/hook-delete-policy": true, "helm.sh/resource-policy": true,
	"cert-manager.io/alt-names": true, "cert-manager.io/certificate-name": true, "cert-manager.io/common-name": true,
	"cert-manager.io/ip-sans": true, "cert-manager.io/issuer-group": true, "cert-manager.io/issuer-kind": true,
	"cert-manager.io/issuer-name": true, "cert-manager.io/uri-sans": true,
	"argocd.argoproj.io/compare-options": true, "argocd.argoproj.io/hook": true, "argocd.argoproj.io/hook-delete-policy": true,
	"argocd.argoproj.io/sync-options": true, "argocd.argoproj.io/sync-wave": true, "argocd.argoproj.io/tracking-id": true,
	"kustomize.toolkit.fluxcd.io/prune": true, "kustomize.toolkit.fluxcd.io/reconcile": true, "kustomize.toolkit.fluxcd.io/ssa": true,
	"kapp.k14s.io/identity": true, "sealedsecrets.bitnami.com/managed": true,
}

// allowsSecretAnnotation reports whether a Secret keeps annotations of that name, if their value is
// harmless too.
func (r *rules) allowsSecretAnnotation(name []byte) bool {
	if allowedAnnotations[string(name)] || r.secretAnnotations.match(name) {
		return true
	}
	for _, prefix := range allowedAnnotationPrefixes {
		if strings.HasPrefix(string(name), prefix) {
			return true
		}
	}
	return false
}

// maxLabelLength is the length of the longest label that Kubernetes takes, in bytes.
const maxLabelLength = 63

// labelRole decides on one label, whose value starts at i. Selectors need all labels
// of a Secret, and no label can hold more than a short word: what Kubernetes would not
// take for one goes.
func (p *pass) labelRole(i int) role {
	if !p.inSecret {
		return roleLabel
	}
	if p.at(i) != '"' {
		return roleDropped
	}
	end, escaped, err := p.quoted(i)
	if err != nil {
		return roleLabel // walking it will tell
	}
	text := p.raw[i+1 : end-1]
	if len(text) > 6*maxLabelLength {
		return roleDropped
	}
	if escaped { // not by plainText: the label's name may stand there
		text = unescape(make([]byte, 0, 6*maxLabelLength), text)
	}
	if len(text) > maxLabelLength {
		return roleDropped
	}
	for _, c := range text {
		if c = lower(c); (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return roleDropped
		}
	}
	return roleLabel
}
