//! What Ebbtide calls. Each call is a new instance: nothing is remembered.

use crate::{Settings, licences, score};

wit_bindgen::generate!({ path: "wit", world: "weigher-plugin" });

use exports::ebbtide::plugin::weigher::{Column, Description, Guest, Hosts, Pair, Request};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let settings = read(&settings)?;
        Ok(Description {
            // A licence is worth more than an evenly filled cloud.
            default_multiplier: 100.0,
            needs: vec![format!("text:{}", settings.metadata)],
            min: Some(-1.0),
            max: Some(1.0),
        })
    }

    fn weigh(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Vec<f64>, String> {
        let settings = read(&settings)?;
        let [Column::Texts(there)] = hosts.columns.as_slice() else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        let spec = format!("extra_spec:{}", settings.extra_spec);
        let wanted = request.properties.iter().find(|pair| pair.key == spec);
        let wanted = licences(wanted.map_or("", |pair| pair.value.as_str()));
        // Many hosts share one text: each is read once.
        let number: Vec<f64> = there
            .texts
            .iter()
            .map(|text| score(&wanted, &licences(text)))
            .collect();
        Ok(there
            .codes
            .iter()
            .map(|code| number[*code as usize])
            .collect())
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
