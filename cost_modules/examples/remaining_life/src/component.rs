//! What Ebbtide calls. Each call is a new instance: nothing is remembered.

use crate::Lifetimes;

wit_bindgen::generate!({ path: "wit", world: "cost-plugin" });

use exports::ebbtide::plugin::cost_module::{Candidates, Column, Description, Guest, Pair};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        read(&settings)?;
        Ok(Description {
            unit: "seconds that it could still expect to run".to_owned(),
            needs: vec!["age_seconds".to_owned()],
            surcharges: Vec::new(),
        })
    }

    fn cost(settings: Vec<Pair>, candidates: Candidates) -> Result<Vec<f64>, String> {
        let lifetimes = read(&settings)?;
        let [Column::Numbers(age_seconds)] = candidates.columns.as_slice() else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        Ok(age_seconds
            .iter()
            .map(|age| lifetimes.remaining(*age))
            .collect())
    }
}

fn read(settings: &[Pair]) -> Result<Lifetimes, String> {
    Lifetimes::read(
        settings
            .iter()
            .map(|pair| (pair.key.as_str(), pair.value.as_str())),
    )
}

export!(Plugin);
