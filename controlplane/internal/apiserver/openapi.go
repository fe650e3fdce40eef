// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/handler3"
)

const (
	pathV2 = "/openapi/v2"
	pathV3 = "/openapi/v3"
)

// lazyOpenAPI serves the OpenAPI documents of the built-in kinds. It builds each
// document when a client first asks for it. Upstream builds all of them before it
// listens, which is a third of its start-up, and most clusters under test end
// before any client has asked for one.
//
// Clients see no difference: the aggregator in front of it downloads version 2 on
// demand. Of version 3 it needs the list of documents, which is known without
// building any. The hash of a document is a placeholder in that list until the
// document is built. If a client requests the placeholder, upstream's handler redirects it to the real hash,
// as after any change of a document.
type lazyOpenAPI struct {
	server  *genericapiserver.GenericAPIServer
	install routes.OpenAPI

	buildV2 sync.Once
	v2      *mux.PathRecorderMux

	mu sync.Mutex
	v3 map[string]*handler3.OpenAPIService // built documents by name, such as apis/apps/v1
}

func installLazyOpenAPI(server *genericapiserver.GenericAPIServer, config *genericapiserver.Config) {
	o := &lazyOpenAPI{
		server:  server,
		install: routes.OpenAPI{Config: config.OpenAPIConfig, V3Config: config.OpenAPIV3Config},
		v3:      map[string]*handler3.OpenAPIService{},
	}
	handler := server.Handler.NonGoRestfulMux
	handler.HandleFunc(pathV2, func(w http.ResponseWriter, r *http.Request) { o.version2().ServeHTTP(w, r) })
	handler.HandleFunc(pathV3, o.serveList)
	handler.HandlePrefix(pathV3+"/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.document(strings.TrimPrefix(r.URL.Path, pathV3+"/")).HandleGroupVersion(w, r)
	}))
}

func (o *lazyOpenAPI) version2() http.Handler {
	o.buildV2.Do(func() {
		o.v2 = mux.NewPathRecorderMux("openapi-v2")
		o.install.InstallV2(o.server.Handler.GoRestfulContainer, o.v2)
	})
	return o.v2
}

// document returns a service with one document of version 3, or an empty service if there is no such document.
func (o *lazyOpenAPI) document(name string) *handler3.OpenAPIService {
	o.mu.Lock()
	defer o.mu.Unlock()
	if built, ok := o.v3[name]; ok {
		return built
	}
	for _, service := range o.server.Handler.GoRestfulContainer.RegisteredWebServices() {
		if documentName(service) == name {
			// Upstream builds a document for each service of a container. A container with one service makes it build one.
			o.v3[name] = o.install.InstallV3(restful.NewContainer().Add(service), mux.NewPathRecorderMux("openapi-v3"))
			return o.v3[name]
		}
	}
	return handler3.NewOpenAPIService()
}

// serveList answers with the list of version 3 documents.
func (o *lazyOpenAPI) serveList(w http.ResponseWriter, r *http.Request) {
	list := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for _, service := range o.server.Handler.GoRestfulContainer.RegisteredWebServices() {
		name := documentName(service)
		list.Paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: pathV3 + "/" + name + "?hash=unbuilt"}
	}
	o.mu.Lock()
	built := maps.Clone(o.v3)
	o.mu.Unlock()
	for name, service := range built {
		paths, err := listOf(service, r)
		if err != nil {
			http.Error(w, fmt.Sprintf("listing the OpenAPI document %s: %v", name, err), http.StatusInternalServerError)
			return
		}
		maps.Copy(list.Paths, paths)
	}
	w.Header().Set("Content-Type", "application/json")
	logIfFailed("answering with the list of OpenAPI documents", json.NewEncoder(w).Encode(list))
}

// listOf returns the documents of a service with their hashes, which only its handler knows.
func listOf(service *handler3.OpenAPIService, r *http.Request) (map[string]handler3.OpenAPIV3DiscoveryGroupVersion, error) {
	response := httptest.NewRecorder()
	service.HandleDiscovery(response, httptest.NewRequestWithContext(r.Context(), http.MethodGet, pathV3, nil))
	if response.Code != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.Code)
	}
	var list handler3.OpenAPIV3Discovery
	err := json.Unmarshal(response.Body.Bytes(), &list)
	return list.Paths, err
}

func documentName(service *restful.WebService) string {
	return strings.TrimPrefix(service.RootPath(), "/")
}
