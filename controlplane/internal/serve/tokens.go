// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// renewTokens removes the tokens from Secrets of service accounts that came
// with the data of another cluster, whose key has signed them. The token
// controller puts new ones in their place.
func renewTokens(ctx context.Context, client kubernetes.Interface) {
	secrets, err := client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String(),
	})
	if err != nil {
		if ctx.Err() == nil {
			klog.ErrorS(err, "Listing the tokens of service accounts")
		}
		return
	}
	for _, secret := range secrets.Items {
		_, err := client.CoreV1().Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType,
			[]byte(`{"data":{"token":null}}`), metav1.PatchOptions{})
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Renewing the token of a service account", "secret", klog.KObj(&secret))
		}
	}
}
