//! The cloud: what it is told, and what it is asked.

use crate::candidates::{AskPlacement, Asked, Candidates};
use crate::error::CloudError;
use crate::facts::{
    Allocations, CellFacts, ComputeFacts, Consumer, InstanceRecord, ProviderFacts, ProviderLine,
    ServiceFacts,
};
use crate::plan::{NoPlan, NoPlanReason, Plan, PlanOptions, ProviderTruth, Verdict};
use crate::scheduling::Scheduling;
use ebbtide_engine::EngineConfig;
use ebbtide_model::Seconds;
use ebbtide_nova::fault::Fault;
use ebbtide_nova::model::{Aggregate, Options, RequestSpec};
use ebbtide_nova::schedule::Call;
use uuid::Uuid;

/// How the cloud decides, besides Nova's own options.
#[derive(Debug, Clone)]
pub struct CloudSettings {
    /// The engine for victims: cost module, policy, limits.
    pub engine: EngineConfig,
    /// Grace period of flavors that say nothing.
    pub grace: Seconds,
    /// Time after launch in which instances of flavors that say nothing are no victims.
    pub protected: Seconds,
    /// A victim that is stopped and not deleted keeps its local disk in Placement.
    pub stop_keeps_disk: bool,
    /// Consider only so many hosts as Placement would return (`max_placement_results`), in the cloud's order. Placement's own choice
    /// is arbitrary; considering all is better and is the default.
    pub cut_like_placement: bool,
}

impl Default for CloudSettings {
    fn default() -> Self {
        Self {
            engine: EngineConfig::default(),
            grace: Seconds(120),
            protected: Seconds(0),
            stop_keeps_disk: true,
            cut_like_placement: false,
        }
    }
}

/// How many of everything the cloud knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Compute nodes that can be scheduled to: with a service, in an enabled cell, with a usable row.
    pub hosts: usize,
    /// All compute nodes.
    pub compute_nodes: usize,
    /// Providers, those included that are no compute nodes.
    pub providers: usize,
    /// Hosts of which Placement's facts are not known and compute rows are believed.
    pub believed: usize,
    /// Instances.
    pub instances: usize,
    /// Those that may be driven out, at some time.
    pub preemptible: usize,
    /// Those of them that have been asked to go.
    pub leaving: usize,
}

/// The cloud in memory.
#[derive(Debug)]
pub struct Cloud {
    options: Options,
    settings: CloudSettings,
}

/// What it is told.
impl Cloud {
    /// A cloud without hosts.
    ///
    /// # Errors
    /// [`CloudError::Engine`].
    pub fn new(options: Options, settings: CloudSettings) -> Result<Self, CloudError> {
        Ok(Self { options, settings })
    }

    /// Nova's options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Our own settings.
    #[must_use]
    pub fn settings(&self) -> &CloudSettings {
        &self.settings
    }

    /// How many of everything there are.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::default()
    }

    /// All cells there are. Hosts of cells that are not named, or disabled, get nothing (but what is sent into a disabled cell
    /// by name); they come back with the cell.
    pub fn set_cells(&mut self, cells: &[CellFacts]) {
        let _ = cells;
    }

    /// The lowest version of a nova-compute over all cells (`services.version`).
    pub fn set_min_compute_version(&mut self, version: i64) {
        let _ = version;
    }

    /// All aggregates there are; hosts by the names of their services.
    pub fn set_aggregates(&mut self, aggregates: Vec<Aggregate>) {
        let _ = aggregates;
    }

    /// One aggregate, new or changed (fanout `update_aggregates`).
    pub fn put_aggregate(&mut self, aggregate: Aggregate) {
        let _ = aggregate;
    }

    /// An aggregate is gone (fanout `delete_aggregate`).
    pub fn remove_aggregate(&mut self, id: i64) {
        let _ = id;
    }

    /// A nova-compute, new or changed.
    pub fn put_service(&mut self, service: ServiceFacts) {
        let _ = service;
    }

    /// A nova-compute is gone: its nodes get nothing any more.
    pub fn remove_service(&mut self, host: &str) {
        let _ = host;
    }

    /// A row of `compute_nodes`, new or changed.
    ///
    /// # Errors
    /// [`CloudError::BadComputeNode`]; the host is left out until a better row comes.
    pub fn put_compute(&mut self, compute: ComputeFacts) -> Result<(), CloudError> {
        let _ = compute;
        Ok(())
    }

    /// A compute node is gone. Instances on it stay known.
    pub fn remove_compute(&mut self, uuid: Uuid) {
        let _ = uuid;
    }

    /// What Placement says of a provider; unknown parts leave what is known.
    pub fn put_provider(&mut self, provider: ProviderFacts) {
        let _ = provider;
    }

    /// A provider is gone.
    pub fn remove_provider(&mut self, uuid: Uuid) {
        let _ = uuid;
    }

    /// All providers there are (`GET /resource_providers`). Those that are not named are removed. Answers with those of which
    /// something has to be read again: new ones, and those with another generation than when their facts were read.
    pub fn provider_list(&mut self, lines: &[ProviderLine]) -> Vec<Uuid> {
        lines.iter().map(|line| line.uuid).collect()
    }

    /// Takes `provider_summaries` of an answer to `GET /allocation_candidates` in: capacity and usage by class, traits, parents. How
    /// many providers were in it.
    ///
    /// # Errors
    /// [`CloudError::BadAnswer`].
    pub fn put_summaries(&mut self, answer: &serde_json::Value) -> Result<usize, CloudError> {
        let _ = answer;
        Ok(0)
    }

    /// A server, new or changed: its host, flavor, task, times.
    pub fn put_instance(&mut self, instance: InstanceRecord) {
        let _ = instance;
    }

    /// A server is gone for good (deleted). What Placement still has for it counts as normal usage until Placement says otherwise.
    pub fn remove_instance(&mut self, uuid: Uuid) {
        let _ = uuid;
    }

    /// A server of which one knows that it is about to leave (a row of the ledger), or that it was spared after all.
    pub fn set_leaving(&mut self, uuid: Uuid, leaving: bool) {
        let _ = (uuid, leaving);
    }

    /// Nova's `update_instance_info`: these servers are on the host. True if the host's instances are confirmed now; false if
    /// they have to be read from the cell's database, with [`Self::host_instances`].
    pub fn update_instance_info(&mut self, host: &str, instances: Vec<InstanceRecord>) -> bool {
        let _ = (host, instances);
        false
    }

    /// Nova's `delete_instance_info`: this server is no longer on the host. The same answer.
    pub fn delete_instance_info(&mut self, host: &str, uuid: Uuid) -> bool {
        let _ = (host, uuid);
        false
    }

    /// Nova's `sync_instance_info`: exactly these are on the host. The same answer: false if it is not what we believe.
    pub fn sync_instance_info(&mut self, host: &str, uuids: &[Uuid]) -> bool {
        let _ = (host, uuids);
        false
    }

    /// What the cell's database says that is on a host, whole. Answers with the servers of which nothing else is known: their rows
    /// are to be read and put.
    pub fn host_instances(&mut self, host: &str, uuids: &[Uuid]) -> Vec<Uuid> {
        let _ = host;
        uuids.to_vec()
    }

    /// A consumer has exactly these allocations now, by our own doing or by what was read. The generation is the one after it.
    pub fn claimed(&mut self, consumer: Uuid, allocations: &Allocations, generation: Option<i64>) {
        let _ = (consumer, allocations, generation);
    }

    /// A consumer has nothing any more.
    pub fn released(&mut self, consumer: Uuid) {
        let _ = consumer;
    }

    /// The truth about who has what of a provider (`GET /resource_providers/{uuid}/allocations`), with the provider's generation.
    pub fn consumers_of(&mut self, provider: Uuid, generation: i64, consumers: &[Consumer]) {
        let _ = (provider, generation, consumers);
    }
}

/// What it is asked.
impl Cloud {
    /// What Nova would ask Placement for this request, as text and in parts. Fills in the destination's node as Nova does.
    ///
    /// # Errors
    /// What Nova raises: RequestFilterFailed, NoValidHost for a host that nobody knows, and so on.
    pub fn ask(&self, spec: &mut RequestSpec) -> Result<Asked, Fault> {
        let _ = spec;
        Err(not_yet())
    }

    /// The hosts that Placement would answer with, as far as we know.
    ///
    /// # Errors
    /// [`AskPlacement`]: this question is Placement's own.
    pub fn candidates(&self, asked: &Asked) -> Result<Candidates, AskPlacement> {
        let _ = asked;
        Err(AskPlacement::NotThere)
    }

    /// The hosts of Placement's real answer (`allocation_requests` and `provider_summaries`).
    ///
    /// # Errors
    /// [`CloudError::BadAnswer`].
    pub fn candidates_from_answer(
        &self,
        answer: &serde_json::Value,
    ) -> Result<Candidates, CloudError> {
        let _ = answer;
        Err(CloudError::Stale)
    }

    /// All hosts, for requests that do not ask Placement (a rebuild).
    #[must_use]
    pub fn all_hosts(&self) -> Candidates {
        Candidates::default()
    }

    /// Hosts among the candidates whose instances are not confirmed, by cell and service's host: Nova reads them from the cell's
    /// database for each request. Only of interest for requests with a server group.
    #[must_use]
    pub fn unconfirmed(&self, candidates: &Candidates) -> Vec<(String, String)> {
        let _ = candidates;
        Vec::new()
    }

    /// Begins to decide a request. `now` in microseconds since 1970, UTC. `seed`: chance where Nova's options allow it; `None` takes
    /// the best.
    ///
    /// # Errors
    /// [`CloudError::Stale`].
    pub fn decide(
        &self,
        spec: RequestSpec,
        call: Call,
        candidates: &Candidates,
        now: i64,
        seed: Option<u64>,
    ) -> Result<Scheduling, CloudError> {
        let _ = (spec, call, candidates, now, seed);
        Ok(Scheduling::not_yet())
    }

    /// Who has to leave so that a normal request that found no room gets it. Looks at h_n: the inventories minus what normal
    /// consumers use. `now` in microseconds since 1970, UTC.
    ///
    /// # Errors
    /// [`NoPlan`] with the reason.
    pub fn plan(
        &self,
        spec: &RequestSpec,
        call: &Call,
        asked: &Asked,
        now: i64,
        options: &PlanOptions,
    ) -> Result<Plan, NoPlan> {
        let _ = (spec, call, asked, now, options);
        Err(NoPlan {
            reason: NoPlanReason::Unsupported,
            text: "planning is not there yet".to_owned(),
            explanation: None,
        })
    }

    /// Holds a plan against what Placement has just said of its hosts' consumers: are the victims there, as big as believed, is the
    /// rest no bigger. Good: generations are filled into the plan.
    pub fn verify(&self, plan: &mut Plan, truth: &[ProviderTruth]) -> Verdict {
        let _ = (plan, truth);
        Verdict::Changed("verifying is not there yet".to_owned())
    }

    /// Whether a request's flavor is preemptible.
    #[must_use]
    pub fn is_preemptible(spec: &RequestSpec) -> bool {
        crate::is_preemptible(&spec.flavor)
    }
}

fn not_yet() -> Fault {
    Fault::new("NotImplementedError", "deciding in memory is not there yet")
}
