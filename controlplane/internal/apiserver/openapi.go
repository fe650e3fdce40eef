// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/handler3"
)

// openAPIDelay keeps the building of documents out of the way of whatever a
// user does in the first moment: a client in a hurry builds them by asking.
const openAPIDelay = 2 * time.Second

// lazyOpenAPI serves the OpenAPI documents of the built-in kinds, which it
// builds when they are first asked for. Upstream builds them before it listens,
// which is a third of its start-up.
//
// Nobody can tell the difference but by timing: the aggregator in front of it
// downloads version 2 on demand, and of version 3 it needs the list of
// documents, which is known without building any. The hashes in that list are
// placeholders until then. A client that asks with one is redirected to the
// real one by upstream's handler, as it is after any change of a document.
type lazyOpenAPI struct {
	server  *genericapiserver.GenericAPIServer
	install routes.OpenAPI

	buildV2 sync.Once
	v2      *mux.PathRecorderMux
	buildV3 sync.Once
	v3      *mux.PathRecorderMux

	mu      sync.Mutex
	v3Built bool
}

const (
	pathV2 = "/openapi/v2"
	pathV3 = "/openapi/v3"
)

func installLazyOpenAPI(server *genericapiserver.GenericAPIServer, config *genericapiserver.Config) *lazyOpenAPI {
	o := &lazyOpenAPI{
		server:  server,
		install: routes.OpenAPI{Config: config.OpenAPIConfig, V3Config: config.OpenAPIV3Config},
	}
	handler := server.Handler.NonGoRestfulMux
	handler.HandleFunc(pathV2, func(w http.ResponseWriter, r *http.Request) { o.version2().ServeHTTP(w, r) })
	handler.HandleFunc(pathV3, o.serveList)
	handler.HandlePrefix(pathV3+"/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.version3().ServeHTTP(w, r) }))
	return o
}

// buildSoon builds the version 3 documents, which every kubectl asks for, once
// the first rush is over. Version 2 is left to the few clients that want it.
func (o *lazyOpenAPI) buildSoon(ctx context.Context) {
	timer := time.AfterFunc(openAPIDelay, func() { o.version3() })
	context.AfterFunc(ctx, func() { timer.Stop() })
}

func (o *lazyOpenAPI) version2() http.Handler {
	o.buildV2.Do(func() {
		o.v2 = mux.NewPathRecorderMux("openapi-v2")
		o.install.InstallV2(o.server.Handler.GoRestfulContainer, o.v2)
	})
	return o.v2
}

func (o *lazyOpenAPI) version3() http.Handler {
	o.buildV3.Do(func() {
		o.v3 = mux.NewPathRecorderMux("openapi-v3")
		o.install.InstallV3(o.server.Handler.GoRestfulContainer, o.v3)
		o.mu.Lock()
		o.v3Built = true
		o.mu.Unlock()
	})
	return o.v3
}

// serveList answers with the list of version 3 documents.
func (o *lazyOpenAPI) serveList(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	built := o.v3Built
	o.mu.Unlock()
	if built {
		o.version3().ServeHTTP(w, r)
		return
	}
	list := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for _, service := range o.server.Handler.GoRestfulContainer.RegisteredWebServices() {
		path := strings.TrimPrefix(service.RootPath(), "/")
		list.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: pathV3 + "/" + path + "?hash=unbuilt"}
	}
	w.Header().Set("Content-Type", "application/json")
	logIfFailed("answering with the list of OpenAPI documents", json.NewEncoder(w).Encode(list))
}
