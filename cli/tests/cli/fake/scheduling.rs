//! Deciding and watching in the fake region.

use super::{Answer, Fake, refuse, usage};
use ebbtide_proto::v1::scheduler_server::Scheduler;
use ebbtide_proto::v1::*;
use std::pin::Pin;
use tokio_stream::{Stream, StreamExt, wrappers::BroadcastStream};
use tonic::{Code, Request, Response, Status};

#[tonic::async_trait]
impl Scheduler for Fake {
    async fn select_destinations(
        &self,
        _: Request<SelectDestinationsRequest>,
    ) -> Answer<SelectDestinationsResponse> {
        Err(Status::unimplemented(
            "the command does not select destinations",
        ))
    }

    async fn what_if(&self, request: Request<WhatIfRequest>) -> Answer<WhatIfResponse> {
        let request = request.into_inner().request.unwrap();
        let decision = self.with(|state| state.decide(&request, false))?;
        Ok(Response::new(WhatIfResponse {
            decision: Some(decision),
            notices: Vec::new(),
            counterfactuals: None,
        }))
    }

    async fn explain(&self, request: Request<ExplainRequest>) -> Answer<ExplainResponse> {
        let id = request.into_inner().id;
        let found = self.with(|state| {
            let of = |d: &&Decision| d.id == id || d.server_ids.contains(&id);
            state.decisions.iter().rev().find(of).cloned()
        });
        let decision = found.ok_or_else(|| {
            refuse(
                Code::NotFound,
                "EB-API-009",
                &format!("no decision about {id:?}"),
            )
        })?;
        Ok(Response::new(ExplainResponse {
            decision: Some(decision),
            counterfactuals: None,
        }))
    }

    async fn list_decisions(
        &self,
        request: Request<ListDecisionsRequest>,
    ) -> Answer<ListDecisionsResponse> {
        let limit = request.into_inner().limit as usize;
        let decisions = self.with(|s| s.decisions.iter().rev().take(limit).cloned().collect());
        Ok(Response::new(ListDecisionsResponse { decisions }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>;

    async fn watch(&self, _: Request<WatchRequest>) -> Answer<Self::WatchStream> {
        if self.with(|state| state.mute) {
            return Err(Status::unimplemented("no stream here"));
        }
        let stream = BroadcastStream::new(self.events.subscribe());
        let stream =
            stream.map(|event| event.map_err(|error| Status::data_loss(error.to_string())));
        let fake = self.clone();
        let stream =
            futures::StreamExt::take_until(stream, Box::pin(async move { fake.ended().await }));
        Ok(Response::new(Box::pin(stream)))
    }

    async fn region_summary(
        &self,
        _: Request<RegionSummaryRequest>,
    ) -> Answer<RegionSummaryResponse> {
        let summary = self.with(|state| {
            let up = state
                .hosts
                .iter()
                .filter(|host| host.health == "up")
                .count();
            let mut resources = vec![usage("VCPU", 0, 0, 0, 0), usage("MEMORY_MB", 0, 0, 0, 0)];
            for host in &state.hosts {
                for (sum, one) in resources.iter_mut().zip(&host.resources) {
                    sum.total += one.total;
                    sum.capacity += one.capacity;
                    sum.normal += one.normal;
                    sum.preemptible += one.preemptible;
                    sum.leaving += one.leaving;
                    sum.free_full += one.free_full;
                    sum.free_normal += one.free_normal;
                }
            }
            let mut servers = std::collections::HashMap::new();
            for server in &state.servers {
                *servers.entry(server.status.clone()).or_insert(0) += 1;
            }
            RegionSummaryResponse {
                hosts_up: u32::try_from(up).unwrap(),
                hosts_disabled: u32::try_from(state.hosts.len() - up).unwrap(),
                servers,
                resources,
                version: "0.1.0".into(),
                policy: state.policy.clone(),
                cost_module: "partial_hour".into(),
                bus: "amqp".into(),
                bus_connected: true,
                database: "sqlite".into(),
                ..Default::default()
            }
        });
        Ok(Response::new(summary))
    }
}
