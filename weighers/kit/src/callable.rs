//! A plugin that can be called, whatever its carrier.

use ebbtide_cost_api::{CostError, CostModule, VictimBatch};
use ebbtide_remote::{RemoteCostModule, RemoteFilter, RemoteWeigher};
use ebbtide_wasm::{WasmCostModule, WasmFilter, WasmWeigher};
use ebbtide_weigher_api::{
    FilterError, FilterVerdicts, HostBatch, HostFilter, RequestView, Weigher, WeigherError,
};

/// The weigher's numbers, and the units of work that they took; `None` for a service, which does
/// not count them.
pub(crate) type WeigherAnswer = (Vec<f64>, Option<u64>);

/// A weigher.
pub(crate) enum TriedWeigher {
    Wasm(WasmWeigher),
    Remote(RemoteWeigher),
}

impl TriedWeigher {
    /// As the engine sees it.
    pub(crate) fn weigher(&self) -> &dyn Weigher {
        match self {
            Self::Wasm(weigher) => weigher,
            Self::Remote(weigher) => weigher,
        }
    }

    /// What it reads, by name.
    pub(crate) fn reads(&self) -> Vec<String> {
        match self {
            Self::Wasm(weigher) => weigher.reads(),
            Self::Remote(weigher) => weigher.reads(),
        }
    }

    pub(crate) fn call(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<WeigherAnswer, WeigherError> {
        match self {
            Self::Wasm(weigher) => {
                let (numbers, used) =
                    weigher
                        .carrier()
                        .weigh_and_measure(weigher.described(), request, hosts)?;
                Ok((numbers, Some(used.work)))
            }
            Self::Remote(weigher) => {
                let mut numbers = vec![0.0; hosts.len];
                weigher.weigh(request, hosts, &mut numbers)?;
                Ok((numbers, None))
            }
        }
    }
}

/// A cost module.
pub(crate) enum TriedCostModule {
    Wasm(WasmCostModule),
    Remote(RemoteCostModule),
}

impl TriedCostModule {
    /// As the engine sees it.
    pub(crate) fn module(&self) -> &dyn CostModule {
        match self {
            Self::Wasm(module) => module,
            Self::Remote(module) => module,
        }
    }

    /// What it reads, by name.
    pub(crate) fn reads(&self) -> Vec<String> {
        match self {
            Self::Wasm(module) => module.reads(),
            Self::Remote(module) => module.reads(),
        }
    }

    pub(crate) fn call(&self, victims: &VictimBatch<'_>) -> Result<WeigherAnswer, CostError> {
        match self {
            Self::Wasm(module) => {
                let (costs, used) = module
                    .carrier()
                    .cost_and_measure(module.described(), victims)?;
                Ok((costs, Some(used.work)))
            }
            Self::Remote(module) => {
                let mut costs = vec![0.0; victims.len];
                module.cost(victims, &mut costs)?;
                Ok((costs, None))
            }
        }
    }
}

/// The filter's verdicts, and the units of work that they took; `None` for a service.
pub(crate) type FilterAnswer = (FilterVerdicts, Option<u64>);

/// A filter.
pub(crate) enum TriedFilter {
    Wasm(WasmFilter),
    Remote(RemoteFilter),
}

impl TriedFilter {
    /// As the engine sees it.
    pub(crate) fn filter(&self) -> &dyn HostFilter {
        match self {
            Self::Wasm(filter) => filter,
            Self::Remote(filter) => filter,
        }
    }

    /// What it reads, by name.
    pub(crate) fn reads(&self) -> Vec<String> {
        match self {
            Self::Wasm(filter) => filter.reads(),
            Self::Remote(filter) => filter.reads(),
        }
    }

    pub(crate) fn call(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterAnswer, FilterError> {
        match self {
            Self::Wasm(filter) => {
                let described = filter.described();
                let carrier = filter.carrier();
                let (verdicts, used) = carrier.filter_and_measure(described, request, hosts)?;
                Ok((verdicts, Some(used.work)))
            }
            Self::Remote(filter) => Ok((filter.filter(request, hosts)?, None)),
        }
    }
}

/// What a plugin turned out to be.
pub(crate) enum TriedPlugin {
    Weigher(TriedWeigher),
    CostModule(TriedCostModule),
    Filter(TriedFilter),
}
