//! A plugin that can be called, whatever its carrier.

use ebbtide_cost_api::{CostError, CostModule, VictimBatch};
use ebbtide_remote::{RemoteCostModule, RemoteWeigher};
use ebbtide_wasm::{WasmCostModule, WasmWeigher};
use ebbtide_weigher_api::{HostBatch, RequestView, Weigher, WeigherError};

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

/// What a plugin turned out to be.
pub(crate) enum TriedPlugin {
    Weigher(TriedWeigher),
    CostModule(TriedCostModule),
}
