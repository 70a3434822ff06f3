//! The engine: a configuration with its plugins, ready to decide.

use crate::checked_request::CheckedRequest;
use crate::decide::attempt;
use crate::plugins::{FailedPlugins, UsedFilter, UsedWeigher};
use crate::table::HostIndex;
use crate::{
    Budgets, EligibleDecision, EligibleHosts, EligibleRequest, EngineConfig, EngineError,
    HostTable, PluginFailure,
};
use ebbtide_cost_api::CostModule;
use ebbtide_model::{
    Decision, DecisionId, DecisionOutcome, Explanation, PlacementRequest, RequestTrace, Timestamp,
};
use ebbtide_weigher_api::{HostFilter, Weigher};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A configuration with its plugins, ready to decide. Cheap to clone, and shared between threads as
/// it is.
#[derive(Clone)]
pub struct Engine {
    config: EngineConfig,
    pub(crate) weighers: Vec<UsedWeigher>,
    pub(crate) filters: Vec<UsedFilter>,
    pub(crate) cost_module: Arc<dyn CostModule>,
    pub(crate) fast: bool,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine with the built-in weighers and cost modules.
    ///
    /// # Errors
    /// [`EngineError::Config`] that names the key.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        Self::with_plugins(config, Vec::new(), Vec::new())
    }

    /// An engine that knows further weighers and cost modules. Which of them are used says the
    /// configuration, by name; a plugin with the name of a built-in one takes its place.
    ///
    /// # Errors
    /// [`EngineError::Config`] that names the key.
    pub fn with_plugins(
        config: EngineConfig,
        weighers: Vec<Arc<dyn Weigher>>,
        cost_modules: Vec<Arc<dyn CostModule>>,
    ) -> Result<Self, EngineError> {
        config.check()?;
        let wrong = |key: String, problem: String| EngineError::Config { key, problem };
        let mut used = Vec::with_capacity(config.weighers.len());
        for (place, wanted) in config.weighers.iter().enumerate() {
            let key = || format!("weighers[{place}].name");
            let plugin = weighers.iter().find(|w| w.name() == wanted.name).cloned();
            let weigher = match plugin {
                Some(weigher) => weigher,
                None => ebbtide_weighers::by_name(&wanted.name, &config.weigher_options())
                    .map_err(|problem| wrong(key(), problem.to_string()))?,
            };
            let multiplier = wanted
                .multiplier
                .unwrap_or_else(|| weigher.default_multiplier());
            used.push(UsedWeigher {
                weigher,
                multiplier,
                on_failure: wanted.on_failure,
            });
        }
        let plugin = cost_modules
            .iter()
            .find(|m| m.name() == config.cost_module)
            .cloned();
        let options = config.cost_module_options();
        let cost_module = match plugin {
            Some(module) => module,
            None => ebbtide_cost_modules::by_name(&config.cost_module, &options)
                .map_err(|problem| wrong("cost_module".to_owned(), problem.to_string()))?,
        };
        Ok(Self {
            config,
            weighers: used,
            filters: Vec::new(),
            cost_module,
            fast: true,
        })
    }

    /// The same engine with filters behind the built-in ones, in this order, each with its policy
    /// for failures; `None`: that of the configuration.
    #[must_use]
    pub fn with_filters(
        mut self,
        filters: Vec<(Arc<dyn HostFilter>, Option<PluginFailure>)>,
    ) -> Self {
        let each = filters.into_iter();
        let used = each.map(|(filter, on_failure)| UsedFilter { filter, on_failure });
        self.filters = used.collect();
        self
    }

    /// The same engine, deciding the simple way: every host that passes is looked at, and nothing
    /// is skipped by what the table keeps ready. The answers are the same; tests and benchmarks
    /// compare the two.
    #[must_use]
    pub fn simple(mut self) -> Self {
        self.set_simple(true);
        self
    }

    /// Decides the simple way from now on, or no more.
    pub fn set_simple(&mut self, simple: bool) {
        self.fast = !simple;
    }

    #[must_use]
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// How much a weigher counts where no aggregate says something else; `None` if it is not used.
    #[must_use]
    pub fn multiplier(&self, weigher: &str) -> Option<f64> {
        let used = self
            .weighers
            .iter()
            .find(|used| used.weigher.name() == weigher);
        used.map(|used| used.multiplier)
    }

    /// What the costs of victims are, in the cost module's words, for example `seconds of the
    /// started billing period`.
    #[must_use]
    pub fn cost_unit(&self) -> &str {
        self.cost_module.unit()
    }

    /// Decides one request: filters, ranks, chooses victims where no host has free capacity, and
    /// explains.
    ///
    /// The engine places several instances one after another as long as a host has free capacity
    /// for the next one. This is the same sequence of choices as without preemption. As soon as an
    /// instance has to leave, the engine places all remaining instances together (policy `tiered`).
    /// It chooses how many instances each host gets and which victims leave, so that all victims
    /// together cost least, and then are fewest. Budgets hold over all hosts, and a surcharge
    /// (`fairness`) counts over all hosts. Among equal choices, hosts that Nova's weights prefer
    /// get as many instances as possible. Under affinity all instances go to the one host that
    /// holds them all at the least cost. Under anti-affinity no host gets more than the group
    /// allows. All or nothing: if one instance finds no host, none is placed.
    ///
    /// `optimal` and `gap` of the explanation refer to the total cost. The search is exact up to
    /// 128 instances, as far as `max_solver_nodes` reaches. Beyond that, the engine places the
    /// instances one after another, each exactly, and states the gap to a proven lower bound. With
    /// a cost module that charges for sets by an arbitrary function, the engine chooses several
    /// instances by the sum of their costs, and the gap is the surcharge. The policies `nova` and
    /// `first-fit` always place instances one after another, because they do not promise the least
    /// cost.
    ///
    /// # Errors
    /// A bad request, or the failure of a plugin whose failures are not to be ignored. NoValidHost
    /// is not an error but an answer.
    pub fn decide(
        &self,
        table: &HostTable,
        budgets: &Budgets,
        request: &PlacementRequest,
        now: Timestamp,
        seed: u64,
        id: DecisionId,
    ) -> Result<Decision, EngineError> {
        self.decide_within(table, budgets, request, (None, None), now, seed, id)
    }

    /// The same for an instance that can be on these hosts only, because its disk or memory is kept
    /// where they can reach it. Unlike forced hosts they have to pass all filters. NoValidHost if
    /// none of them is known.
    ///
    /// # Errors
    /// As [`Self::decide`].
    #[allow(
        clippy::too_many_arguments,
        reason = "each is one input of a pure function"
    )]
    pub fn decide_on(
        &self,
        table: &HostTable,
        budgets: &Budgets,
        request: &PlacementRequest,
        hosts: &[&str],
        now: Timestamp,
        seed: u64,
        id: DecisionId,
    ) -> Result<Decision, EngineError> {
        let none = EligibleHosts::none(table);
        let known = hosts.iter().filter_map(|host| table.find_host(host));
        let only: BTreeSet<HostIndex> = known.collect();
        // Unknown hosts are among none.
        let limits = match only.is_empty() {
            true => (Some(&none), None),
            false => (None, Some(only)),
        };
        self.decide_within(table, budgets, request, limits, now, seed, id)
    }

    /// The same for amounts on hosts that the caller's filters have let pass, with the caller's
    /// weights. The request has no rules about hosts: `eligible` stands for them.
    ///
    /// # Errors
    /// As [`Self::decide`].
    pub fn decide_for_eligible(
        &self,
        table: &HostTable,
        budgets: &Budgets,
        request: &EligibleRequest,
        eligible: &EligibleHosts<'_>,
        now: Timestamp,
        seed: u64,
    ) -> Result<EligibleDecision, EngineError> {
        request.check(eligible.host_needs().is_some())?;
        let ask = CheckedRequest::for_eligible(table, request, eligible);
        let (outcome, explanation) = self.answer(table, budgets, &ask, now, seed)?;
        Ok(EligibleDecision {
            outcome,
            explanation,
        })
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "each is one input of a pure function"
    )]
    fn decide_within(
        &self,
        table: &HostTable,
        budgets: &Budgets,
        request: &PlacementRequest,
        (eligible, only): (Option<&EligibleHosts<'_>>, Option<BTreeSet<HostIndex>>),
        now: Timestamp,
        seed: u64,
        id: DecisionId,
    ) -> Result<Decision, EngineError> {
        request.check()?;
        let properties = request.flavor.properties()?;
        let mut ask = CheckedRequest::new(table, request, &properties, eligible)?;
        ask.only = only;
        let (outcome, explanation) = self.answer(table, budgets, &ask, now, seed)?;
        Ok(Decision {
            id,
            at: now,
            request: request.clone(),
            outcome,
            explanation,
            trace: RequestTrace::default(),
        })
    }

    /// Tries until no further plugin fails.
    fn answer(
        &self,
        table: &HostTable,
        budgets: &Budgets,
        ask: &CheckedRequest<'_>,
        now: Timestamp,
        seed: u64,
    ) -> Result<(DecisionOutcome, Explanation), EngineError> {
        let mut broken = FailedPlugins::default();
        loop {
            match attempt(self, &broken, table, budgets, ask, now, seed) {
                Ok(answer) => return Ok(answer),
                Err(failure) => broken.note(failure, self)?,
            }
        }
    }
}
