// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import "slices"

// object and list keep the values below readable.
type (
	object = map[string]any
	list   = []any
)

// nowhere is a label that no node and no pod has.
const nowhere = "opdock.dev/no-such-label"

// podTypes are parts of a PodSpec.
var podTypes = []knownType{
	{closed: true, propose: proposeResources, matches: func(s site) bool { return has(s.schema, "requests", "limits") }},
	{closed: true, propose: proposeAffinity, matches: func(s site) bool {
		return has(s.schema, "nodeAffinity") || has(s.schema, "podAffinity") || has(s.schema, "podAntiAffinity")
	}},
	{closed: true, propose: proposeTolerations, matches: func(s site) bool { return isList(s.schema, "effect", "tolerationSeconds") }},
	{closed: true, propose: proposeSpread, matches: func(s site) bool { return isList(s.schema, "maxSkew", "topologyKey") }},
	{closed: true, propose: proposeNodeSelector, matches: func(s site) bool {
		return ends(s.name, "nodeSelector") && kindOf(s.schema) == "map" && !s.element
	}},
	{closed: true, propose: proposeSecurityContext, matches: func(s site) bool { return has(s.schema, "runAsNonRoot", "runAsUser") }},
	{closed: true, propose: proposeProbe, matches: func(s site) bool { return has(s.schema, "failureThreshold", "periodSeconds") }},
	{closed: true, propose: proposeEnv, matches: func(s site) bool { return isList(s.schema, "value", "valueFrom") }},
	{closed: true, propose: proposeEnvFrom, matches: func(s site) bool { return isList(s.schema, "configMapRef", "secretRef") }},
	{closed: true, propose: proposeVolumes, matches: func(s site) bool { return isList(s.schema, "emptyDir", "configMap", "secret") }},
	{closed: true, propose: proposeMounts, matches: func(s site) bool { return isList(s.schema, "mountPath", "name") }},
	{closed: true, propose: proposeSelector, matches: func(s site) bool { return has(s.schema, "matchLabels", "matchExpressions") }},
	{propose: proposePullPolicy, matches: func(s site) bool { return isText(s.schema) && ends(s.name, "pullPolicy", "imagePullPolicy") }},
	{propose: proposeAccessModes, matches: func(s site) bool { return s.schema.Type == "array" && ends(s.name, "accessModes") }},
}

func proposeResources(w *walker, s site) {
	w.valid(s, "other resources",
		object{"requests": object{"cpu": "150m", "memory": "96Mi"}, "limits": object{"cpu": "300m", "memory": "192Mi"}},
		object{"requests": object{"storage": "2Gi"}})
	w.valid(s, "requests without limits", object{"requests": object{"cpu": "150m", "memory": "96Mi"}})
	w.valid(s, "limits without requests", object{"limits": object{"cpu": "300m", "memory": "192Mi"}})
	w.limit(s, "requests of zero", object{"requests": object{"cpu": "0", "memory": "0"}})
	w.limit(s, "fractions of a byte", object{"requests": object{"memory": "100m"}})
	w.misuse(s, "more than any node has", object{"requests": object{"cpu": "100k", "memory": "1Ei"}})
	w.misuse(s, "requests that exceed the limits", object{"requests": object{"cpu": "2"}, "limits": object{"cpu": "1"}})
	w.misuse(s, "a resource that no node has",
		object{"requests": object{"example.com/no-such-device": "1"}, "limits": object{"example.com/no-such-device": "1"}},
		object{"limits": object{"example.com/no-such-device": "1"}})
	w.misuse(s, "negative resources", object{"requests": object{"cpu": "-1"}})
}

func nodeAffinity(operator string, values list) object {
	expression := object{"key": nowhere, "operator": operator}
	if values != nil {
		expression["values"] = values
	}
	return object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{
		"nodeSelectorTerms": list{object{"matchExpressions": list{expression}}},
	}}}
}

func proposeAffinity(w *walker, s site) {
	apart := object{
		"labelSelector": object{"matchLabels": object{"app": "example"}},
		"topologyKey":   "kubernetes.io/hostname",
	}
	w.valid(s, "an anti-affinity that is preferred", object{"podAntiAffinity": object{
		"preferredDuringSchedulingIgnoredDuringExecution": list{object{"weight": int64(1), "podAffinityTerm": apart}},
	}})
	w.valid(s, "an affinity that every node satisfies", nodeAffinity("DoesNotExist", nil))
	w.limit(s, "an empty affinity", object{})
	w.misuse(s, "an affinity that no node satisfies", nodeAffinity("Exists", nil), nodeAffinity("In", list{"true"}))
	w.misuse(s, "an affinity to pods that do not exist", object{"podAffinity": object{
		"requiredDuringSchedulingIgnoredDuringExecution": list{object{
			"labelSelector": object{"matchLabels": object{nowhere: "true"}}, "topologyKey": "kubernetes.io/hostname",
		}},
	}})
	w.misuse(s, "an affinity with an operator that does not exist", nodeAffinity("Near", list{"true"}))
	w.misuse(s, "an affinity without a topology key", object{"podAntiAffinity": object{
		"requiredDuringSchedulingIgnoredDuringExecution": list{object{"topologyKey": ""}},
	}})
}

func proposeTolerations(w *walker, s site) {
	one := object{"key": "example.com/dedicated", "operator": "Exists", "effect": "NoSchedule"}
	w.valid(s, "one more toleration", append(listOf(s), one))
	w.valid(s, "tolerating everything", list{object{"operator": "Exists"}})
	w.limit(s, "a toleration that ends", append(listOf(s), object{
		"key": "example.com/dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(0),
	}))
	w.misuse(s, "a toleration with an effect that does not exist", append(listOf(s), object{"key": "a", "operator": "Exists", "effect": "Never"}))
	w.misuse(s, "a toleration with an operator that does not exist", append(listOf(s), object{"key": "a", "operator": "Like", "value": "b"}))
	w.misuse(s, "a toleration of a bad key", append(listOf(s), object{"key": "-not a key-", "operator": "Exists"}))
}

// listOf returns a copy of the list that a property holds.
func listOf(s site) list {
	elements, _ := s.value.([]any)
	return slices.Clone(elements)
}

func proposeSpread(w *walker, s site) {
	spread := func(skew int64, key, when string) list {
		return append(listOf(s), object{
			"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": object{"matchLabels": object{"app": "example"}},
		})
	}
	w.valid(s, "one more spread constraint", spread(1, "kubernetes.io/hostname", "ScheduleAnyway"))
	w.misuse(s, "a spread over a label that no node has", spread(1, nowhere, "DoNotSchedule"))
	w.misuse(s, "a spread with a policy that does not exist", spread(1, "kubernetes.io/hostname", "Sometimes"))
	w.misuse(s, "a spread with a skew of zero", spread(0, "kubernetes.io/hostname", "ScheduleAnyway"))
}

func proposeNodeSelector(w *walker, s site) {
	w.valid(s, "a selector that every node satisfies", object{"kubernetes.io/os": "linux"})
	w.misuse(s, "a selector that no node satisfies", object{nowhere: "true"})
	w.misuse(s, "a selector with a bad key", object{"-not a key-": "true"})
	w.misuse(s, "a selector with a bad value", object{"example": "not a value"})
}

func proposeSecurityContext(w *walker, s site) {
	w.valid(s, "a user that is not root", object{"runAsNonRoot": true, "runAsUser": int64(1000), "runAsGroup": int64(1000)})
	w.limit(s, "an empty security context", object{})
	w.misuse(s, "root where no root is allowed", object{"runAsNonRoot": true, "runAsUser": int64(0)})
	w.misuse(s, "a negative user", object{"runAsUser": int64(-1)})
	w.misuse(s, "privileged without escalation", object{"privileged": true, "allowPrivilegeEscalation": false})
	w.misuse(s, "a profile without its path", object{"seccompProfile": object{"type": "Localhost"}})
	w.misuse(s, "a bad sysctl", object{"sysctls": list{object{"name": "not a sysctl", "value": "1"}}})
}

func proposeProbe(w *walker, s site) {
	probe := func(action string, how object, period int64) object {
		return object{action: how, "periodSeconds": period, "failureThreshold": int64(2)}
	}
	propose := w.valid
	if slices.Contains(s.path, "initContainers") {
		propose = w.limit // Kubernetes refuses probes of init containers that do not restart.
	}
	propose(s, "a probe of a port", probe("tcpSocket", object{"port": int64(80)}, 5), object{"periodSeconds": int64(5)})
	propose(s, "a probe by HTTP", probe("httpGet", object{"path": "/healthz", "port": int64(80)}, 20))
	propose(s, "a probe by a command", probe("exec", object{"command": list{"true"}}, 10))
	w.misuse(s, "a probe of a port that does not exist", probe("httpGet", object{"path": "/", "port": "no-such-port"}, 10))
	w.misuse(s, "a probe of a port that cannot exist", probe("tcpSocket", object{"port": int64(70000)}, 10))
	w.misuse(s, "a probe that does two things",
		object{"tcpSocket": object{"port": int64(80)}, "exec": object{"command": list{"true"}}})
	w.misuse(s, "a probe that does nothing", object{"periodSeconds": int64(5)})
}

func proposeEnv(w *walker, s site) {
	variable := func(one object) list { return append(listOf(s), one) }
	w.valid(s, "one more variable", variable(object{"name": "OPDOCK_EXAMPLE", "value": "1"}))
	w.valid(s, "a variable with an empty value", variable(object{"name": "OPDOCK_EMPTY", "value": ""}))
	w.valid(s, "a variable that refers to another", variable(object{"name": "OPDOCK_REFERENCE", "value": "$(HOME)/$$x"}))
	w.valid(s, "a variable from the pod", variable(object{
		"name": "OPDOCK_POD", "valueFrom": object{"fieldRef": object{"apiVersion": "v1", "fieldPath": "metadata.name"}},
	}), variable(object{"name": "OPDOCK_POD", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}}}))
	w.misuse(s, "a variable from a secret that does not exist", variable(object{
		"name": "OPDOCK_SECRET", "valueFrom": object{"secretKeyRef": object{"name": "no-such-secret", "key": "no-such-key"}},
	}))
	w.misuse(s, "a variable with a bad name", variable(object{"name": "1 BAD=NAME", "value": "1"}))
	w.misuse(s, "a variable with value and source", variable(object{
		"name": "OPDOCK_BOTH", "value": "1", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}},
	}))
	w.misuse(s, "a variable from a field that does not exist", variable(object{
		"name": "OPDOCK_FIELD", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.nothing"}},
	}))
	if before := listOf(s); len(before) > 0 {
		if first, ok := before[0].(map[string]any); ok {
			w.misuse(s, "a variable twice", variable(object{"name": first["name"], "value": "twice"}))
		}
	}
}

func proposeEnvFrom(w *walker, s site) {
	w.valid(s, "an optional source", append(listOf(s), object{"configMapRef": object{"name": "no-such-configmap", "optional": true}}))
	w.misuse(s, "a source that does not exist", append(listOf(s), object{"secretRef": object{"name": "no-such-secret"}}))
	w.misuse(s, "a source of nothing", append(listOf(s), object{"prefix": "A_"}))
}

func proposeVolumes(w *walker, s site) {
	volume := func(one object) list { return append(listOf(s), one) }
	w.valid(s, "one more volume", volume(object{"name": "opdock-example", "emptyDir": object{}}))
	w.misuse(s, "a volume from a ConfigMap that does not exist", volume(object{"name": "opdock-missing", "configMap": object{"name": "no-such-configmap"}}))
	w.misuse(s, "a volume from a claim that does not exist", volume(object{
		"name": "opdock-missing", "persistentVolumeClaim": object{"claimName": "no-such-claim"},
	}))
	w.misuse(s, "a volume with a bad name", volume(object{"name": "Not_A_Name", "emptyDir": object{}}))
	w.misuse(s, "a volume of no kind", volume(object{"name": "opdock-nothing"}))
}

func proposeMounts(w *walker, s site) {
	w.misuse(s, "a mount of a volume that does not exist", append(listOf(s), object{"name": "no-such-volume", "mountPath": "/missing"}))
	if before := listOf(s); len(before) > 0 {
		if first, ok := before[0].(map[string]any); ok {
			w.misuse(s, "two mounts at one path", append(before, object{"name": first["name"], "mountPath": first["mountPath"], "readOnly": true}))
		}
	}
}

func proposeSelector(w *walker, s site) {
	w.limit(s, "a selector of everything", object{})
	w.valid(s, "another selector", object{"matchLabels": object{"app": "example"}})
	w.limit(s, "a selector of nothing", object{"matchLabels": object{nowhere: "true"}})
	w.misuse(s, "a selector with an operator that does not exist", object{"matchExpressions": list{object{"key": "app", "operator": "Like", "values": list{"a"}}}})
	w.misuse(s, "a selector without values", object{"matchExpressions": list{object{"key": "app", "operator": "In"}}})
	w.misuse(s, "a selector with a bad label", object{"matchLabels": object{"-not a key-": "not a value"}})
}

func proposePullPolicy(w *walker, s site) {
	for _, policy := range []string{"Always", "IfNotPresent", "Never"} {
		w.valid(s, "another policy", policy)
	}
	w.misuse(s, "a policy that does not exist", "Sometimes")
}

func proposeAccessModes(w *walker, s site) {
	w.valid(s, "another mode", list{"ReadWriteMany"}, list{"ReadWriteOnce"})
	w.misuse(s, "a mode that does not exist", list{"ReadSometimes"})
}
