//! Operator calls: hosts, flavors, aggregates, budgets, adoption of servers.

use super::guard::caller;
use super::request::{optional, parsed, required};
use super::servers::{CREATE, on_the_wire};
use super::{ApiHandlers, convert};
use crate::cloud::{ListedServer, Standalone};
use crate::error::ServiceError;
use ebbtide_access::Caller;
use ebbtide_engine::HostSummary;
use ebbtide_model::{
    Aggregate, AggregateId, BudgetScope, DisruptionBudget, Flavor, FlavorId, GroupId, Seconds,
    ServerId, names,
};
use ebbtide_proto::v1;
use ebbtide_region::{
    AdoptServer, CreateFlavor, DeleteAggregate, DeleteFlavor, DisableHost, EnableHost, PutAggregate,
};
use ebbtide_runtime::ids;
use tonic::{Request, Response, Status};

/// Longest budget window. A restarted scheduler reads the evacuations of the last 31 days, and
/// windows must fit into them.
const MAX_WINDOW: u32 = 30 * 24 * 3600;

impl ApiHandlers {
    async fn host(&self, name: &str) -> Result<(HostSummary, Vec<ListedServer>), ServiceError> {
        let found = self.api.cloud.host(name).await?;
        found.ok_or_else(|| ServiceError::NotFound {
            what: "host",
            name: names::shorten(name),
            next: "`ebbtide host list` shows those that there are",
        })
    }

    /// A standalone region, where an OpenStack has a command.
    fn own(&self, command: &'static str) -> Result<&Standalone, ServiceError> {
        self.api.standalone(command)
    }
}

/// `None`: all flavors are the caller's to see.
fn tenant_projects(who: &Caller) -> Option<&[String]> {
    who.is_tenant().then_some(who.projects.as_slice())
}

fn scope(project_id: String, group_id: &str) -> Result<BudgetScope, ServiceError> {
    match (
        optional(project_id),
        parsed::<GroupId>("group_id", group_id)?,
    ) {
        (Some(project), None) => Ok(BudgetScope::Project(project)),
        (None, Some(group)) => Ok(BudgetScope::Group(group)),
        _ => Err(ServiceError::Field {
            field: "project_id, group_id",
            problem: "exactly one of the two has to be set".to_owned(),
        }),
    }
}

#[tonic::async_trait]
impl v1::admin_server::Admin for ApiHandlers {
    async fn list_hosts(
        &self,
        _request: Request<v1::ListHostsRequest>,
    ) -> Result<Response<v1::ListHostsResponse>, Status> {
        let hosts = self.api.cloud.hosts().await?;
        Ok(Response::new(v1::ListHostsResponse {
            hosts: hosts.iter().map(convert::host).collect(),
        }))
    }

    async fn get_host(
        &self,
        request: Request<v1::GetHostRequest>,
    ) -> Result<Response<v1::GetHostResponse>, Status> {
        let name = request.into_inner().name;
        let (host, servers) = self.host(&name).await?;
        Ok(Response::new(v1::GetHostResponse {
            host: Some(convert::host(&host)),
            servers: servers.iter().map(on_the_wire).collect(),
        }))
    }

    async fn disable_host(
        &self,
        request: Request<v1::DisableHostRequest>,
    ) -> Result<Response<v1::DisableHostResponse>, Status> {
        let v1::DisableHostRequest { name, reason } = request.into_inner();
        let disable = DisableHost {
            name: name.clone(),
            reason,
        };
        let command =
            "openstack compute service set --disable --disable-reason REASON HOST nova-compute";
        self.own(command)?.region_actor.handle(disable).await?;
        let (host, _) = self.host(&name).await?;
        Ok(Response::new(v1::DisableHostResponse {
            host: Some(convert::host(&host)),
        }))
    }

    async fn enable_host(
        &self,
        request: Request<v1::EnableHostRequest>,
    ) -> Result<Response<v1::EnableHostResponse>, Status> {
        let name = request.into_inner().name;
        let command = EnableHost(name.clone());
        let region = self.own("openstack compute service set --enable HOST nova-compute")?;
        region.region_actor.handle(command).await?;
        let (host, _) = self.host(&name).await?;
        Ok(Response::new(v1::EnableHostResponse {
            host: Some(convert::host(&host)),
        }))
    }

    async fn remove_host(
        &self,
        request: Request<v1::RemoveHostRequest>,
    ) -> Result<Response<v1::RemoveHostResponse>, Status> {
        let by = super::guard::caller(&request)?.name;
        let host = request.into_inner().name;
        let left = self.api.removals.remove_host(&host).await?;
        tracing::info!(
            by,
            host,
            queue_deleted = left.queue_deleted,
            "the host is removed"
        );
        Ok(Response::new(left))
    }

    async fn readmit_host(
        &self,
        request: Request<v1::ReadmitHostRequest>,
    ) -> Result<Response<v1::ReadmitHostResponse>, Status> {
        let by = super::guard::caller(&request)?.name;
        let host = request.into_inner().name;
        self.api.removals.readmit_host(&host).await?;
        tracing::info!(by, host, "the host may register again");
        Ok(Response::new(v1::ReadmitHostResponse {}))
    }

    async fn reclaim_host(
        &self,
        request: Request<v1::ReclaimHostRequest>,
    ) -> Result<Response<v1::ReclaimHostResponse>, Status> {
        let by = super::guard::caller(&request)?.name;
        let wire = request.into_inner();
        let terms = super::reclaims::terms(&wire)?;
        let (host, dry_run) = (&wire.name, wire.dry_run);
        let reclaimed = self.api.reclaims.reclaim(host, terms, dry_run).await?;
        if !dry_run {
            let v1::ReclaimHostRequest { owner, reason, .. } = &wire;
            let servers = reclaimed.reclaim.charged.len();
            tracing::info!(by, host, owner, reason, servers, "the host is reclaimed");
        }
        Ok(Response::new(v1::ReclaimHostResponse {
            reclaim: Some(self.api.shown_reclaim(reclaimed).await?),
        }))
    }

    async fn get_reclaim(
        &self,
        request: Request<v1::GetReclaimRequest>,
    ) -> Result<Response<v1::GetReclaimResponse>, Status> {
        let host = request.into_inner().name;
        let reclaim = self.api.reclaim_of(&host).await?;
        Ok(Response::new(v1::GetReclaimResponse {
            reclaim: Some(reclaim),
        }))
    }

    async fn list_reclaims(
        &self,
        _request: Request<v1::ListReclaimsRequest>,
    ) -> Result<Response<v1::ListReclaimsResponse>, Status> {
        let mut reclaims = Vec::new();
        for reclaim in self.api.reclaims.reclaims(None).await? {
            reclaims.push(self.api.shown_reclaim(reclaim).await?);
        }
        Ok(Response::new(v1::ListReclaimsResponse { reclaims }))
    }

    async fn return_host(
        &self,
        request: Request<v1::ReturnHostRequest>,
    ) -> Result<Response<v1::ReturnHostResponse>, Status> {
        let by = super::guard::caller(&request)?.name;
        let v1::ReturnHostRequest {
            name,
            keep_disabled,
        } = request.into_inner();
        self.api.reclaims.give_back(&name, keep_disabled).await?;
        tracing::info!(by, host = name, keep_disabled, "the host is returned");
        let (host, _) = self.host(&name).await?;
        Ok(Response::new(v1::ReturnHostResponse {
            host: Some(convert::host(&host)),
        }))
    }

    async fn create_flavor(
        &self,
        request: Request<v1::CreateFlavorRequest>,
    ) -> Result<Response<v1::CreateFlavorResponse>, Status> {
        let wire = required("flavor", request.into_inner().flavor)?;
        let flavor = Flavor {
            id: parsed("flavor.id", &wire.id)?.unwrap_or_else(|| FlavorId(ids::new())),
            name: wire.name,
            vcpus: wire.vcpus,
            ram_mb: wire.ram_mb,
            disk_gb: wire.disk_gb,
            extra_specs: wire.extra_specs.into_iter().collect(),
        };
        let region =
            self.own("openstack flavor create NAME --property ebbtide:preemptible=true")?;
        let flavor = region.region_actor.handle(CreateFlavor(flavor)).await?;
        Ok(Response::new(v1::CreateFlavorResponse {
            flavor: Some(convert::flavor(&flavor)),
        }))
    }

    async fn list_flavors(
        &self,
        request: Request<v1::ListFlavorsRequest>,
    ) -> Result<Response<v1::ListFlavorsResponse>, Status> {
        let who = caller(&request)?;
        let flavors = self.api.cloud.flavors(tenant_projects(&who)).await?;
        Ok(Response::new(v1::ListFlavorsResponse {
            flavors: flavors.iter().map(convert::flavor).collect(),
        }))
    }

    async fn get_flavor(
        &self,
        request: Request<v1::GetFlavorRequest>,
    ) -> Result<Response<v1::GetFlavorResponse>, Status> {
        let who = caller(&request)?;
        let name = request.into_inner().id;
        let flavor = self.api.cloud.flavor(&name, tenant_projects(&who)).await?;
        Ok(Response::new(v1::GetFlavorResponse {
            flavor: Some(convert::flavor(&flavor)),
        }))
    }

    async fn delete_flavor(
        &self,
        request: Request<v1::DeleteFlavorRequest>,
    ) -> Result<Response<v1::DeleteFlavorResponse>, Status> {
        let region = self.own("openstack flavor delete FLAVOR")?;
        let command = DeleteFlavor(request.into_inner().id);
        region.region_actor.handle(command).await?;
        Ok(Response::new(v1::DeleteFlavorResponse {}))
    }

    async fn put_aggregate(
        &self,
        request: Request<v1::PutAggregateRequest>,
    ) -> Result<Response<v1::PutAggregateResponse>, Status> {
        let wire = required("aggregate", request.into_inner().aggregate)?;
        let aggregate = Aggregate {
            id: parsed("aggregate.id", &wire.id)?.unwrap_or_else(|| AggregateId(ids::new())),
            name: wire.name,
            hosts: wire.hosts.into_iter().collect(),
            metadata: wire.metadata.into_iter().collect(),
        };
        let aggregate = self
            .own("openstack aggregate create NAME")?
            .region_actor
            .handle(PutAggregate(aggregate))
            .await?;
        Ok(Response::new(v1::PutAggregateResponse {
            aggregate: Some(convert::aggregate(&aggregate)),
        }))
    }

    async fn list_aggregates(
        &self,
        _request: Request<v1::ListAggregatesRequest>,
    ) -> Result<Response<v1::ListAggregatesResponse>, Status> {
        let all = self.api.cloud.aggregates().await?;
        let aggregates = all.iter().map(convert::aggregate).collect();
        Ok(Response::new(v1::ListAggregatesResponse { aggregates }))
    }

    async fn delete_aggregate(
        &self,
        request: Request<v1::DeleteAggregateRequest>,
    ) -> Result<Response<v1::DeleteAggregateResponse>, Status> {
        let region = self.own("openstack aggregate delete AGGREGATE")?;
        let command = DeleteAggregate(request.into_inner().id);
        region.region_actor.handle(command).await?;
        Ok(Response::new(v1::DeleteAggregateResponse {}))
    }

    async fn put_budget(
        &self,
        request: Request<v1::PutBudgetRequest>,
    ) -> Result<Response<v1::PutBudgetResponse>, Status> {
        let wire = required("budget", request.into_inner().budget)?;
        if wire.window_seconds > MAX_WINDOW {
            return Err(ServiceError::Field {
                field: "window_seconds",
                problem: format!(
                    "{} is too long, at most {MAX_WINDOW} (30 days)",
                    wire.window_seconds
                ),
            }
            .into());
        }
        let budget = DisruptionBudget {
            scope: scope(wire.project_id, &wire.group_id)?,
            max_victims: wire.max_victims,
            window: Seconds(wire.window_seconds),
        };
        let budget = self.api.budgets.put(budget).await?;
        Ok(Response::new(v1::PutBudgetResponse {
            budget: Some(convert::budget(&budget)),
        }))
    }

    async fn list_budgets(
        &self,
        request: Request<v1::ListBudgetsRequest>,
    ) -> Result<Response<v1::ListBudgetsResponse>, Status> {
        let who = super::guard::caller(&request)?;
        let all = self.api.budgets.budgets().await?;
        let mut budgets: Vec<v1::DisruptionBudget> = all.iter().map(convert::budget).collect();
        if who.is_tenant() {
            // Budgets of server groups do not name the group's project, so a tenant sees only the
            // budgets of its projects.
            budgets.retain(|budget| who.sees(&budget.project_id));
        }
        Ok(Response::new(v1::ListBudgetsResponse { budgets }))
    }

    async fn list_plugins(
        &self,
        _request: Request<v1::ListPluginsRequest>,
    ) -> Result<Response<v1::ListPluginsResponse>, Status> {
        let listed = self.api.plugins.listed();
        let plugins = listed.iter().map(convert::plugin);
        Ok(Response::new(v1::ListPluginsResponse {
            plugins: plugins.collect(),
        }))
    }

    async fn delete_budget(
        &self,
        request: Request<v1::DeleteBudgetRequest>,
    ) -> Result<Response<v1::DeleteBudgetResponse>, Status> {
        let wire = request.into_inner();
        let scope = scope(wire.project_id, &wire.group_id)?;
        self.api.budgets.delete(scope).await?;
        Ok(Response::new(v1::DeleteBudgetResponse {}))
    }

    async fn adopt_server(
        &self,
        request: Request<v1::AdoptServerRequest>,
    ) -> Result<Response<v1::AdoptServerResponse>, Status> {
        let wire = request.into_inner();
        let region = self.own(CREATE)?;
        let resolved = self.api.cloud.flavor_and_group(&wire.flavor, &wire.group);
        let (flavor, group) = resolved.await?;
        let adopt = AdoptServer {
            id: parsed("id", &wire.id)?.unwrap_or_else(|| ServerId(ids::new())),
            name: wire.name,
            project_id: optional(wire.project_id).unwrap_or_else(|| "default".to_owned()),
            flavor,
            group,
            host: wire.host,
            launched_at: parsed("launched_at", &wire.launched_at)?,
            start_now: wire.start_now,
        };
        let server = region.region_actor.handle(adopt).await?;
        Ok(Response::new(v1::AdoptServerResponse {
            server: Some(convert::server(&server, None)),
        }))
    }

    async fn audit(
        &self,
        _request: Request<v1::AuditRequest>,
    ) -> Result<Response<v1::AuditResponse>, Status> {
        Ok(Response::new(self.examine().await?))
    }

    async fn reconcile(
        &self,
        request: Request<v1::ReconcileRequest>,
    ) -> Result<Response<v1::ReconcileResponse>, Status> {
        let answer = self.reconcile_restored(request.into_inner()).await?;
        Ok(Response::new(answer))
    }
}
