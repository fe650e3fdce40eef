// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// stopWatchingCertificates replaces certificates that upstream reloads from files by what the files contain now. A
// cluster writes its certificates before it starts and never while it runs. Each file that is watched takes one of the
// inotify instances of the user, by default 128, which file watchers of editors and of opdock dev need as well.
func stopWatchingCertificates(config *app.Config) (err error) {
	serving := config.KubeAPIs.ControlPlane.Generic.SecureServing
	trusted := &config.KubeAPIs.ControlPlane.ClusterAuthenticationInfo
	for _, authority := range []*dynamiccertificates.CAContentProvider{&serving.ClientCA, &trusted.ClientCA, &trusted.RequestHeaderCA} {
		if *authority == nil {
			continue
		}
		name := (*authority).Name()
		if *authority, err = dynamiccertificates.NewStaticCAContent(name, (*authority).CurrentCABundleContent()); err != nil {
			return fmt.Errorf("certificate authority %s: %w", name, err)
		}
	}
	certificate, key := serving.Cert.CurrentCertKeyContent()
	if serving.Cert, err = dynamiccertificates.NewStaticCertKeyContent(serving.Cert.Name(), certificate, key); err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	return nil
}
