// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	appv1 "github.com/opdock/opdock/api/app/v1"
)

// app reads the spec of an AppService called web.
func app(t *testing.T, spec string) *appv1.AppService {
	t.Helper()
	result := &appv1.AppService{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "n", Generation: 7}}
	if err := yaml.UnmarshalStrict([]byte(spec), &result.Spec); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestPorts(t *testing.T) {
	for _, test := range []struct{ name, ports, service, container string }{
		{"omitted target", `[{port: 80}]`, "80→80", "80"},
		{"numeric target", `[{port: 80, targetPort: 8080}]`, "80→8080", "8080"},
		{"named target", `[{port: 80, targetPort: http}]`, "80→http", "80 http"},
		{"two ports, one target", `[{port: 80, name: a, targetPort: 8080}, {port: 81, name: b, targetPort: 8080}]`, "a 80→8080, b 81→8080", "8080"},
		{"two ports, one named target", `[{port: 80, name: a, targetPort: http}, {port: 81, name: b, targetPort: http}]`, "a 80→http, b 81→http", "80 http"},
		{"a name for a number that has none", `[{port: 80, name: a}, {port: 81, name: b, targetPort: 80}, {port: 80, name: c, protocol: UDP, targetPort: dns}]`,
			"a 80→80, b 81→80, c 80→dns UDP", "80, 80 dns UDP"},
		{"one name for two protocols", `[{port: 53, name: dns, protocol: TCP, targetPort: dns}, {port: 53, name: dns-udp, protocol: UDP, targetPort: dns}]`,
			"dns 53→dns TCP, dns-udp 53→53 UDP", "53 dns TCP, 53 UDP"},
		{"node port", `[{port: 80, nodePort: 30002}]`, "80→80 node 30002", "80"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := app(t, "{image: i, ports: "+test.ports+"}")
			var got []string
			for _, port := range service(a).Spec.Ports {
				text := strings.TrimSpace(fmt.Sprintf("%s %d→%s", ptr.Deref(port.Name, ""), *port.Port, port.TargetPort))
				if port.Protocol != nil {
					text += " " + string(*port.Protocol)
				}
				if port.NodePort != nil {
					text += fmt.Sprintf(" node %d", *port.NodePort)
				}
				got = append(got, text)
			}
			if got := strings.Join(got, ", "); got != test.service {
				t.Errorf("service: got %s", got)
			}
			got = nil
			for _, port := range containerPorts(a) {
				got = append(got, strings.TrimSpace(strings.Join(strings.Fields(fmt.Sprintf("%d %s %s", port.ContainerPort, port.Name, port.Protocol)), " ")))
			}
			if got := strings.Join(got, ", "); got != test.container {
				t.Errorf("container: got %s", got)
			}
		})
	}
}

func TestServiceTypes(t *testing.T) {
	for _, test := range []struct{ spec, want string }{
		{`{image: i, ports: [{port: 80}]}`, `{"type":"ClusterIP"}`},
		{`{image: i, ports: [{port: 80, nodePort: 30002}]}`, `{"type":"NodePort"}`},
		{`{image: i, ports: [{port: 80}], service: {type: Headless}}`, `{"clusterIP":"None","type":"ClusterIP"}`},
		{`{image: i, ports: [{port: 80}], service: {type: LoadBalancer, loadBalancerClass: c, externalTrafficPolicy: Local}}`,
			`{"externalTrafficPolicy":"Local","loadBalancerClass":"c","type":"LoadBalancer"}`},
		{`{image: i, ports: [{port: 80}], service: {externalTrafficPolicy: Local, sessionAffinity: ClientIP}}`, `{"sessionAffinity":"ClientIP","type":"ClusterIP"}`},
	} {
		spec := asMap(t, service(app(t, test.spec)))["spec"].(map[string]any)
		delete(spec, "ports")
		delete(spec, "selector")
		if got := asJSON(t, spec); got != test.want {
			t.Errorf("%s: got %s", test.spec, got)
		}
	}
}

func TestReplicas(t *testing.T) {
	const autoscaled = `{image: i, size: 3, autoscaling: {minReplicas: 2, maxReplicas: 6}}`
	live := func(replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	}
	for _, test := range []struct {
		name, spec string
		live       *appsv1.Deployment
		owned      bool
		want       *int32
	}{
		{"as asked for", `{image: i, size: 3}`, &appsv1.Deployment{}, false, ptr.To[int32](3)},
		{"default", `{image: i}`, &appsv1.Deployment{}, false, ptr.To[int32](1)},
		{"none", `{image: i, size: 0}`, live(3), true, ptr.To[int32](0)},
		{"scaled by hand", `{image: i, size: 3}`, live(5), false, ptr.To[int32](3)},
		{"autoscaled from the beginning", autoscaled, &appsv1.Deployment{}, false, ptr.To[int32](3)},
		{"autoscaled, too small at first", `{image: i, size: 0, autoscaling: {minReplicas: 2, maxReplicas: 6}}`, &appsv1.Deployment{}, false, ptr.To[int32](2)},
		{"autoscaler not there yet", autoscaled, live(4), true, ptr.To[int32](4)},
		{"autoscaler not there yet, none running", autoscaled, live(0), true, ptr.To[int32](2)},
		{"autoscaler has taken over", autoscaled, live(5), false, nil},
	} {
		if got := replicas(app(t, test.spec), test.live, test.owned); !ptr.Equal(got, test.want) {
			t.Errorf("%s: got %v", test.name, ptr.Deref(got, -1))
		}
	}
}

func TestSecurityProfiles(t *testing.T) {
	const confined = `{"seccompProfile":{"type":"RuntimeDefault"}}`
	for _, test := range []struct{ name, spec, pod, container string }{
		{"nothing said", `{image: i}`, confined, `null`},
		{"by name", `{image: i, securityProfile: RuntimeDefault, securityContext: {privileged: true}}`, confined, `{"privileged":true}`},
		{"as written", `{image: i, securityProfile: AsWritten}`, `null`, `null`},
		{"restricted", `{image: i, securityProfile: Restricted}`,
			`{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`, `{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}`},
		{"what is said stays", `{image: i, securityProfile: Restricted, podSecurityContext: {runAsUser: 5}, securityContext: {capabilities: {drop: [NET_RAW], add: [NET_BIND_SERVICE]}}}`,
			`{"runAsNonRoot":true,"runAsUser":5,"seccompProfile":{"type":"RuntimeDefault"}}`,
			`{"allowPrivilegeEscalation":false,"capabilities":{"add":["NET_BIND_SERVICE"],"drop":["NET_RAW","ALL"]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := deployment(app(t, test.spec), nil)
			if err != nil {
				t.Fatal(err)
			}
			spec := d.Spec.Template.Spec
			if got := asYAML(t, spec.SecurityContext); got != asYAML(t, json.RawMessage(test.pod)) {
				t.Errorf("pod: got %s", got)
			}
			if got := asYAML(t, spec.Containers[0].SecurityContext); got != asYAML(t, json.RawMessage(test.container)) {
				t.Errorf("container: got %s", got)
			}
		})
	}
}

func TestURL(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		balancer   string
		want       string
	}{
		{"no ports", `{image: i}`, "", ""},
		{"in the cluster", `{image: i, ports: [{port: 80}]}`, "", "http://web.n.svc"},
		{"another port", `{image: i, ports: [{port: 8080}]}`, "", "http://web.n.svc:8080"},
		{"https", `{image: i, ports: [{port: 8443, appProtocol: https}]}`, "", "https://web.n.svc:8443"},
		{"not for browsers", `{image: i, ports: [{port: 53, protocol: UDP}]}`, "", ""},
		{"load balancer", `{image: i, ports: [{port: 80}], service: {type: LoadBalancer}}`, "192.0.2.1", "http://192.0.2.1"},
		{"load balancer of version 6", `{image: i, ports: [{port: 80}], service: {type: LoadBalancer}}`, "2001:db8::1", "http://[2001:db8::1]"},
		{"ingress", `{image: i, ports: [{port: 8080}], ingress: {rules: [{host: shop.example.com, path: /}]}}`, "", "http://shop.example.com"},
		{"ingress with a certificate", `{image: i, ports: [{port: 80}], ingress: {rules: [{host: a.example, path: /x}], tls: [{secretName: s, hosts: [a.example]}]}}`, "", "https://a.example/x"},
		{"ingress for any host, no address yet", `{image: i, ports: [{port: 80}], ingress: {rules: [{host: "", path: /}]}}`, "", "http://web.n.svc"},
		{"ingress for many hosts", `{image: i, ports: [{port: 80}], ingress: {rules: [{host: "*.a.example", path: /}, {host: b.example, path: /}]}}`, "", "http://b.example"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &scope{app: app(t, test.spec)}
			if len(s.app.Spec.Ports) > 0 {
				s.service = &corev1.Service{}
				if test.balancer != "" {
					s.service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: test.balancer}}
				}
			}
			if s.app.Spec.Ingress != nil {
				s.ingress = &networkingv1.Ingress{}
			}
			if got := url(s); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// asYAML has its fields sorted.
func asYAML(t *testing.T, value any) string {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func asMap(t *testing.T, value any) map[string]any {
	t.Helper()
	var result map[string]any
	if err := json.Unmarshal([]byte(asJSON(t, value)), &result); err != nil {
		t.Fatal(err)
	}
	return result
}
