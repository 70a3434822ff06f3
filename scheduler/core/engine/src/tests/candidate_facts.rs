//! Cost modules read what operators say of the hosts on which candidates are.

use super::kit::*;
use crate::{Engine, EngineConfig};
use ebbtide_cost_api::{CostError, CostModule, Fact, FactColumn, VictimBatch};
use std::sync::Arc;

/// What an hour of power costs where the candidate is.
struct PowerPrice(Vec<Fact>);

impl CostModule for PowerPrice {
    fn name(&self) -> &str {
        "power_price"
    }

    fn unit(&self) -> &str {
        "cents an hour"
    }

    fn facts(&self) -> &[Fact] {
        &self.0
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        let FactColumn::Numbers(prices) = victims.fact(&self.0[0])? else {
            return Err(CostError::Other("prices are numbers".to_owned()));
        };
        let FactColumn::Texts(names) = victims.fact(&self.0[1])? else {
            return Err(CostError::Other("names are texts".to_owned()));
        };
        for (at, out) in out.iter_mut().enumerate() {
            assert!(names.get(at).starts_with("host-"), "{}", names.get(at));
            *out = prices[at];
        }
        Ok(())
    }
}

fn by_power(facts: &[&str]) -> Engine {
    let facts = facts.iter().map(|fact| fact.parse().unwrap()).collect();
    let module: Arc<dyn CostModule> = Arc::new(PowerPrice(facts));
    let config = EngineConfig {
        cost_module: "power_price".to_owned(),
        ..EngineConfig::default()
    };
    Engine::with_plugins(config, Vec::new(), vec![module]).unwrap()
}

#[test]
fn victims_are_those_whose_hosts_say_that_their_loss_is_cheap() {
    // The partial hour, which is the default, would take the one of host-a.
    let instances = [
        spot(1, "host-a", 4, 61),
        spot(2, "host-b", 4, 119),
        spot(3, "host-c", 4, 90),
    ];
    let hosts = [("host-a", 4), ("host-b", 4), ("host-c", 4)];
    let mut table = cloud(&hosts, &instances);
    table.set_aggregates(&[
        aggregate(1, &["host-a"], &[("power_price", "12")]),
        aggregate(2, &["host-b"], &[("power_price", "3")]),
        aggregate(3, &["host-c"], &[("power_price", "31")]),
    ]);
    let engine = by_power(&["number:power_price", "host_name"]);
    let decision = decide_with(&engine, &table, &wants(4));
    assert_eq!(summary(&decision), [("host-b", vec![2])]);
    assert_eq!(
        placed(&decision)[0].victims[0].cost.to_bits(),
        3.0_f64.to_bits()
    );
    let all = [server(1), server(2), server(3)];
    assert_eq!(engine.price(&table, &all, now()), Ok(46.0));
    assert_eq!(summary(&decide(&table, &wants(4))), [("host-a", vec![1])]);
}
