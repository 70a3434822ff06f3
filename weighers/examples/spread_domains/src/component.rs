//! What Ebbtide calls. Each call is a new instance: nothing is remembered.

use crate::{Hosts as Known, Settings, keeps_apart, scores};

wit_bindgen::generate!({ path: "wit", world: "weigher-plugin" });

use exports::ebbtide::plugin::weigher::{Column, Description, Guest, Hosts, Pair, Request};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let settings = read(&settings)?;
        Ok(Description {
            default_multiplier: 2.0,
            needs: vec![
                format!("text:{}", settings.domain),
                "group_members".to_owned(),
                "num_instances".to_owned(),
            ],
            min: None,
            max: None,
        })
    }

    fn weigh(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Vec<f64>, String> {
        let settings = read(&settings)?;
        let [
            Column::Texts(domain),
            Column::Numbers(members),
            Column::Numbers(instances),
        ] = hosts.columns.as_slice()
        else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        let policy = request
            .properties
            .iter()
            .find(|pair| pair.key == "group_policy");
        let apart = keeps_apart(policy.map(|pair| pair.value.as_str()));
        let known = Known {
            domain: &domain.codes,
            members,
            instances,
        };
        Ok(scores(known, apart, settings.balance))
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
