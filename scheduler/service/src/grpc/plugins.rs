//! Plugin changes at run time, shadow reports, records of the region.

use super::{ApiHandlers, convert};
use crate::error::ServiceError;
use ebbtide_engine::PluginFailure;
use ebbtide_live_plugins::{PluginChange, ShadowReport};
use ebbtide_model::Timestamp;
use ebbtide_plugins::PluginConfig;
use ebbtide_proto::v1;
use std::path::PathBuf;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

/// Size of a chunk of a record, in bytes.
const PIECE: usize = 1 << 20;

fn config(wire: &v1::AddPluginRequest) -> Result<PluginConfig, ServiceError> {
    let problem = |field, problem: &str| ServiceError::Field {
        field,
        problem: problem.to_owned(),
    };
    let given = [
        !wire.component.is_empty(),
        !wire.file.is_empty(),
        !wire.address.is_empty(),
    ];
    if given.into_iter().filter(|given| *given).count() != 1 {
        let what = "exactly one of the three has to be set";
        return Err(problem("component, file, address", what));
    }
    let mut config = match wire.address.is_empty() {
        true if wire.file.is_empty() => {
            PluginConfig::new(&wire.name, PathBuf::from(format!("{}.wasm", wire.name)))
        }
        true => PluginConfig::new(&wire.name, PathBuf::from(&wire.file)),
        false => PluginConfig::at(&wire.name, &wire.address),
    };
    config.plugin = Some(wire.plugin.clone()).filter(|plugin| !plugin.is_empty());
    config.settings = wire.settings.clone().into_iter().collect();
    config.multiplier = wire.multiplier;
    config.on_failure = match wire.on_failure.as_str() {
        "" => None,
        "ignore" => Some(PluginFailure::Ignore),
        "refuse" => Some(PluginFailure::Refuse),
        _ => return Err(problem("on_failure", "it is neither ignore nor refuse")),
    };
    config.shadow = wire.shadow;
    config.grants.clone_from(&wire.grants);
    for (given, key) in [
        (wire.memory_mb, &mut config.memory_mb),
        (wire.work_million, &mut config.work_million),
        (wire.work_per_row, &mut config.work_per_row),
        (wire.deadline_ms, &mut config.deadline_ms),
        (wire.in_flight, &mut config.in_flight),
    ] {
        if given != 0 {
            *key = given;
        }
    }
    Ok(config)
}

fn report(report: &ShadowReport, unit: String, shadow_unit: String) -> v1::ShadowReportResponse {
    let totals = |of: fn(&(u64, u64)) -> u64, cost: fn(&(f64, f64)) -> f64| v1::ShadowTotals {
        no_valid_host: of(&report.no_valid_host),
        victims: of(&report.victims),
        cost: cost(&report.cost),
        shadow_cost: cost(&report.shadow_cost),
    };
    let mut moves: Vec<v1::ShadowMove> = report
        .moves
        .iter()
        .map(|((decided, in_shadow), times)| v1::ShadowMove {
            decided: decided.clone(),
            in_shadow: in_shadow.clone(),
            times: *times,
        })
        .collect();
    moves.sort_by_key(|one| std::cmp::Reverse(one.times));
    let recent = report.recent.iter().rev().map(|(at, compared)| {
        let shadow = compared.shadow.clone().unwrap_or_default();
        v1::ShadowDifference {
            at_ms: at.as_millis(),
            decision_id: compared.decision_id.to_string(),
            flavor: compared.flavor.clone(),
            decided: compared.decided.hosts.clone(),
            in_shadow: shadow.hosts,
            victims: compared.decided.victims,
            shadow_victims: shadow.victims,
        }
    });
    v1::ShadowReportResponse {
        since_ms: report.since.map_or(0, Timestamp::as_millis),
        what: report.what.clone(),
        decisions: report.decisions,
        different: report.different,
        failed: report.failed,
        warned: report.warned,
        decided: Some(totals(|pair| pair.0, |pair| pair.0)),
        in_shadow: Some(totals(|pair| pair.1, |pair| pair.1)),
        cost_unit: unit,
        shadow_cost_unit: shadow_unit,
        moves,
        other_moves: report.other_moves,
        recent: recent.collect(),
        last_problem: report.last_problem.clone(),
    }
}

#[tonic::async_trait]
impl v1::plugins_server::Plugins for ApiHandlers {
    async fn add_plugin(
        &self,
        request: Request<v1::AddPluginRequest>,
    ) -> Result<Response<v1::AddPluginResponse>, Status> {
        let wire = request.into_inner();
        let config = config(&wire)?;
        let component = Some(wire.component).filter(|bytes| !bytes.is_empty());
        let plugins = &self.api.plugins;
        let added = plugins.add(config, component, wire.replace).await;
        added.map_err(ServiceError::from)?;
        let listed = plugins.listed();
        let mut listed = listed.iter();
        let added = listed.find(|listed| listed.plugin.config.name == wire.name);
        Ok(Response::new(v1::AddPluginResponse {
            plugin: added.map(convert::plugin),
        }))
    }

    async fn remove_plugin(
        &self,
        request: Request<v1::RemovePluginRequest>,
    ) -> Result<Response<v1::RemovePluginResponse>, Status> {
        let name = request.into_inner().name;
        let removed = self.api.plugins.remove(&name).await;
        removed.map_err(ServiceError::from)?;
        Ok(Response::new(v1::RemovePluginResponse {}))
    }

    async fn change_plugin(
        &self,
        request: Request<v1::ChangePluginRequest>,
    ) -> Result<Response<v1::ChangePluginResponse>, Status> {
        let wire = request.into_inner();
        let change = PluginChange {
            enabled: wire.enabled,
            shadow: wire.shadow,
            multiplier: wire.multiplier,
            reset_multiplier: wire.reset_multiplier,
        };
        let changed = self.api.plugins.change(&wire.name, change).await;
        changed.map_err(ServiceError::from)?;
        Ok(Response::new(v1::ChangePluginResponse {}))
    }

    async fn use_cost_module(
        &self,
        request: Request<v1::UseCostModuleRequest>,
    ) -> Result<Response<v1::UseCostModuleResponse>, Status> {
        let name = request.into_inner().name;
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        let used = self.api.plugins.use_cost_module(name).await;
        let name = used.map_err(ServiceError::from)?;
        Ok(Response::new(v1::UseCostModuleResponse { name }))
    }

    async fn shadow_report(
        &self,
        _request: Request<v1::ShadowReportRequest>,
    ) -> Result<Response<v1::ShadowReportResponse>, Status> {
        let plugins = &self.api.plugins;
        let (unit, shadow_unit) = plugins.cost_units();
        Ok(Response::new(report(
            &plugins.shadow_report(),
            unit,
            shadow_unit,
        )))
    }

    type RecordRegionStream = std::pin::Pin<
        Box<dyn Stream<Item = Result<v1::RecordRegionResponse, Status>> + Send + 'static>,
    >;

    async fn record_region(
        &self,
        _request: Request<v1::RecordRegionRequest>,
    ) -> Result<Response<Self::RecordRegionStream>, Status> {
        let record = self.api.cloud.record().await?;
        let json = serde_json::to_vec(&record)
            .map_err(|error| ServiceError::Config(format!("the record: {error}")))?;
        let pieces: Vec<Result<v1::RecordRegionResponse, Status>> = json
            .chunks(PIECE)
            .map(|piece| {
                let piece = piece.to_vec();
                Ok(v1::RecordRegionResponse { piece })
            })
            .collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }
}
