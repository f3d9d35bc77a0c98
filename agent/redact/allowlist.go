package redact

import "strings"

// allowedAnnotationPrefixes are the prefixes of Spinnaker's own annotations, by which it
// groups, versions and routes objects.
var allowedAnnotationPrefixes = []string{"artifact.spinnaker.io/", "caching.spinnaker.io/", "moniker.spinnaker.io/",
	"strategy.spinnaker.io/", "traffic.spinnaker.io/"}

// allowedAnnotations are further annotations that a Secret keeps. By definition of the tools
// that write them, they hold names, switches or numbers. Two kinds are missing on purpose:
// digests of the data, because values can be guessed from them, and
// kubernetes.io/change-cause, because it may hold a whole command line.
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

// allowsSecretAnnotation reports whether a Secret keeps annotations with that name, provided
// that safeAnnotation accepts their value.
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

// maxLabelLength is the length of the longest valid label, in bytes.
const maxLabelLength = 63

// labelRole returns the role of a label, whose value starts at i. Secrets keep all valid
// labels, because selectors need them and a label can hold only a short word. Values that
// are not valid labels are dropped.
func (p *redaction) labelRole(i int) role {
	if !p.inSecret {
		return roleLabel
	}
	if p.at(i) != '"' {
		return roleDropped
	}
	end, escaped, err := p.quoted(i)
	if err != nil {
		return roleLabel // walking it reports the error
	}
	text := p.raw[i+1 : end-1]
	if len(text) > 6*maxLabelLength {
		return roleDropped
	}
	if escaped { // not by plainText, because its buffer may hold the name of the label
		text = unescape(make([]byte, 0, 6*maxLabelLength), text)
	}
	if len(text) > maxLabelLength {
		return roleDropped
	}
	for _, c := range text {
		c = lower(c)
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return roleDropped
		}
	}
	return roleLabel
}
