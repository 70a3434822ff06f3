//! What Ebbtide calls. Each call is a new instance: nothing is remembered.

use crate::{Settings, image, score};

wit_bindgen::generate!({ path: "wit", world: "weigher-plugin" });

use exports::ebbtide::plugin::weigher::{Column, Description, Guest, Hosts, Pair, Request};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let settings = read(&settings)?;
        Ok(Description {
            default_multiplier: 1.0,
            needs: vec![format!("text:{}", settings.metadata)],
            min: Some(0.0),
            max: Some(1.0),
        })
    }

    fn weigh(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Vec<f64>, String> {
        let settings = read(&settings)?;
        let [Column::Texts(cached)] = hosts.columns.as_slice() else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        let property = |key: &str| {
            let found = request.properties.iter().find(|pair| pair.key == key);
            found.map(|pair| pair.value.as_str())
        };
        let image = image(&settings, property);
        // Many hosts share one text: each is searched once.
        let number: Vec<f64> = cached.texts.iter().map(|text| score(image, text)).collect();
        Ok(cached
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
