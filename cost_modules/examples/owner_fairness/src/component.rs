//! What Ebbtide calls. Each call is a new instance: nothing is remembered.

use crate::{Settings, size};

wit_bindgen::generate!({ path: "wit", world: "cost-plugin" });

use exports::ebbtide::plugin::cost_module::{Candidates, Column, Description, Guest, Pair};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let settings = read(&settings)?;
        Ok(Description {
            unit: "processors, and more for further victims of one project".to_owned(),
            needs: vec!["vcpus".to_owned()],
            // No cost may depend on who else is a candidate. That several of one project cost more
            // is said here, and Ebbtide searches with it.
            surcharges: settings.surcharges(),
        })
    }

    fn cost(settings: Vec<Pair>, candidates: Candidates) -> Result<Vec<f64>, String> {
        read(&settings)?;
        let [Column::Numbers(vcpus)] = candidates.columns.as_slice() else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        Ok(vcpus.iter().map(|vcpus| size(*vcpus)).collect())
    }
}

fn read(settings: &[Pair]) -> Result<Settings, String> {
    Settings::read(
        settings
            .iter()
            .map(|pair| (pair.key.as_str(), pair.value.as_str())),
    )
}

export!(Plugin);
