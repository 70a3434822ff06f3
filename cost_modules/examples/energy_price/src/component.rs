//! What Ebbtide calls. Each call is a new instance: nothing is remembered.

use crate::Power;

wit_bindgen::generate!({ path: "wit", world: "cost-plugin" });

use exports::ebbtide::plugin::cost_module::{Candidates, Column, Description, Guest, Pair};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        read(&settings)?;
        Ok(Description {
            unit: "currency units that an hour of it earns after its power".to_owned(),
            needs: vec![
                "vcpus".to_owned(),
                "memory_mb".to_owned(),
                "price_per_hour".to_owned(),
                "host:has:power_price".to_owned(),
                "host:number:power_price".to_owned(),
            ],
            surcharges: Vec::new(),
        })
    }

    fn cost(settings: Vec<Pair>, candidates: Candidates) -> Result<Vec<f64>, String> {
        let power = read(&settings)?;
        let [
            Column::Numbers(vcpus),
            Column::Numbers(memory_mb),
            Column::Numbers(price),
            Column::Numbers(is_known),
            Column::Numbers(power_price),
        ] = candidates.columns.as_slice()
        else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        let here = is_known.iter().zip(power_price);
        // A negative power price counts as 0.
        let here = here.map(|(is_known, price)| (*is_known == 1.0).then_some(price.max(0.0)));
        let all = vcpus.iter().zip(memory_mb).zip(price).zip(here);
        Ok(all
            .map(|(((vcpus, memory_mb), price), here)| {
                power.margin(*vcpus, *memory_mb, *price, here)
            })
            .collect())
    }
}

fn read(settings: &[Pair]) -> Result<Power, String> {
    Power::read(
        settings
            .iter()
            .map(|pair| (pair.key.as_str(), pair.value.as_str())),
    )
}

export!(Plugin);
