//! A gRPC service that answers with what it was asked, behind the REST layer.

use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use ebbtide_proto::v1;
use ebbtide_proto::v1::scheduler_server::{Scheduler, SchedulerServer};
use ebbtide_proto::v1::servers_server::{Servers, ServersServer};
use ebbtide_rest::{RestConfig, RestLayer};
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tonic::body::Body;
use tonic::service::Routes;
use tonic::{Status, metadata::MetadataMap};
use tower::{Layer as _, Service as _};

/// Limit of bodies in these tests.
pub(crate) const BODY_BYTES: usize = 4096;

/// The service. It refuses the token `wrong` as a gate does: before it reads the body.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    /// The metadata of the last call.
    pub(crate) metadata: Arc<Mutex<MetadataMap>>,
    /// The last request for servers.
    pub(crate) created: Arc<Mutex<v1::CreateServersRequest>>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct RestAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl RestAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }
}

impl Fake {
    /// Sends a request through the layer.
    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        let layer = RestLayer::new(RestConfig {
            challenge: "Bearer realm=\"ebbtide\"".to_owned(),
            https: false,
            body_bytes: BODY_BYTES,
            large_body_bytes: 2 * BODY_BYTES,
        });
        let routes = Routes::new(ServersServer::new(self.clone()))
            .add_service(SchedulerServer::new(self.clone()));
        let mut service = layer.unwrap().layer(routes);
        std::future::poll_fn(|context| service.poll_ready(context))
            .await
            .unwrap();
        service.call(request).await.unwrap()
    }

    /// Sends `METHOD PATH` with these headers and this body, and reads the answer.
    pub(crate) async fn ask(
        &self,
        request: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> RestAnswer {
        let (method, path) = request.split_once(' ').unwrap();
        let mut built = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            built = built.header(*name, *value);
        }
        let body = Body::new(axum::body::Body::from(body.to_owned()));
        let answer = self.send(built.body(body).unwrap()).await;
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        RestAnswer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    fn note(&self, metadata: &MetadataMap) -> Result<(), Status> {
        *self.metadata.lock().unwrap() = metadata.clone();
        match metadata.get("authorization") {
            Some(token) if token == "Bearer wrong" => Err(Status::unauthenticated("who is this")),
            _ => Ok(()),
        }
    }
}

fn server(id: impl Into<String>) -> v1::Server {
    let resources = ["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_A", "CUSTOM_B"];
    v1::Server {
        id: id.into(),
        name: "web".to_owned(),
        resources: resources.map(|class| (class.to_owned(), 2)).into(),
        ..Default::default()
    }
}

macro_rules! refuse {
    ($($name:ident $input:ident $output:ident;)+) => {
        $(fn $name<'life, 'async_trait>(
            &'life self,
            _: tonic::Request<v1::$input>,
        ) -> Pin<Box<dyn Future<Output = Result<tonic::Response<v1::$output>, Status>>
            + Send + 'async_trait>>
        where
            'life: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(std::future::ready(Err(Status::failed_precondition("not now"))))
        })+
    };
}

#[tonic::async_trait]
impl Servers for Fake {
    async fn create_servers(
        &self,
        request: tonic::Request<v1::CreateServersRequest>,
    ) -> Result<tonic::Response<v1::CreateServersResponse>, Status> {
        self.note(request.metadata())?;
        *self.created.lock().unwrap() = request.into_inner();
        Ok(tonic::Response::new(v1::CreateServersResponse {
            servers: vec![server("1")],
            ..Default::default()
        }))
    }

    async fn get_server(
        &self,
        request: tonic::Request<v1::GetServerRequest>,
    ) -> Result<tonic::Response<v1::GetServerResponse>, Status> {
        self.note(request.metadata())?;
        let id = request.into_inner().id;
        if id == "missing" {
            return Err(Status::not_found("there is no server \"missing\""));
        }
        Ok(tonic::Response::new(v1::GetServerResponse {
            server: Some(server(id)),
        }))
    }

    async fn list_servers(
        &self,
        request: tonic::Request<v1::ListServersRequest>,
    ) -> Result<tonic::Response<v1::ListServersResponse>, Status> {
        self.note(request.metadata())?;
        let asked = request.into_inner();
        let first = asked.marker.parse::<u32>().map_or(1, |marker| marker + 1);
        let all = (first..=5).map(|n| server(n.to_string()));
        Ok(tonic::Response::new(v1::ListServersResponse {
            servers: all.take(asked.limit as usize).collect(),
        }))
    }

    async fn delete_server_group(
        &self,
        request: tonic::Request<v1::DeleteServerGroupRequest>,
    ) -> Result<tonic::Response<v1::DeleteServerGroupResponse>, Status> {
        self.note(request.metadata())?;
        Ok(tonic::Response::new(v1::DeleteServerGroupResponse {}))
    }

    refuse! {
        delete_server DeleteServerRequest DeleteServerResponse;
        release_server ReleaseServerRequest ReleaseServerResponse;
        create_server_group CreateServerGroupRequest CreateServerGroupResponse;
        list_server_groups ListServerGroupsRequest ListServerGroupsResponse;
        get_evacuation GetEvacuationRequest GetEvacuationResponse;
        list_evacuations ListEvacuationsRequest ListEvacuationsResponse;
    }
}

#[tonic::async_trait]
impl Scheduler for Fake {
    type WatchStream = Pin<Box<dyn futures::Stream<Item = Result<v1::WatchEvent, Status>> + Send>>;

    async fn watch(
        &self,
        request: tonic::Request<v1::WatchRequest>,
    ) -> Result<tonic::Response<Self::WatchStream>, Status> {
        self.note(request.metadata())?;
        let events = (1..=2).map(|sequence| v1::WatchEvent {
            sequence,
            event: Some(v1::watch_event::Event::Server(server("1"))),
            ..Default::default()
        });
        let end = futures::stream::iter([Err(Status::unavailable("the end"))]);
        let stream = futures::stream::iter(events.map(Ok)).chain(end);
        Ok(tonic::Response::new(Box::pin(stream)))
    }

    refuse! {
        select_destinations SelectDestinationsRequest SelectDestinationsResponse;
        what_if WhatIfRequest WhatIfResponse;
        explain ExplainRequest ExplainResponse;
        list_decisions ListDecisionsRequest ListDecisionsResponse;
        region_summary RegionSummaryRequest RegionSummaryResponse;
    }
}
