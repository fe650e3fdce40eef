// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// The name of the role is the one in metrics-server's manifests, which replace it.
const roleName = "system:aggregated-metrics-reader"

// Register makes the API appear in discovery, and lets those who may view pods view their usage. What exists, because it
// was there before or because a metrics-server was installed, stays as it is.
func Register(ctx context.Context, config *restclient.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	services, err := apiregistration.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	_, err = client.RbacV1().ClusterRoles().Create(ctx, role(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating cluster role %s: %w", roleName, err)
	}
	service := apiService()
	_, err = services.APIServices().Create(ctx, service, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating APIService %s: %w", service.Name, err)
	}
	return nil
}

func role() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: roleName, Labels: map[string]string{
			"rbac.authorization.k8s.io/aggregate-to-view":  "true",
			"rbac.authorization.k8s.io/aggregate-to-edit":  "true",
			"rbac.authorization.k8s.io/aggregate-to-admin": "true",
		}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1beta1.GroupName}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
}

func apiService() *apiregistrationv1.APIService {
	version := v1beta1.SchemeGroupVersion
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: version.Version + "." + version.Group},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: version.Group, Version: version.Version, GroupPriorityMinimum: 100, VersionPriority: 100,
		},
	}
}
