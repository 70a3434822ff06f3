//! What Ebbtide calls. Each call is a new instance: nothing is remembered.

use crate::{FULL, Host, OVERCOMMITTED, Settings, Taken, awake, score};

wit_bindgen::generate!({ path: "wit", world: "weigher-plugin" });

use exports::ebbtide::plugin::weigher::{Column, Description, Guest, Hosts, Pair, Request};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let settings = read(&settings)?;
        Ok(Description {
            // More than Nova's weighers for memory, processors and disk, which spread, have
            // together.
            default_multiplier: 20.0,
            needs: vec![
                format!("text:{}", settings.domain),
                "num_instances".to_owned(),
                "free_vcpus".to_owned(),
                "free_ram_mb".to_owned(),
            ],
            min: Some(OVERCOMMITTED),
            max: Some(FULL),
        })
    }

    fn weigh(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Vec<f64>, String> {
        let settings = read(&settings)?;
        let [
            Column::Texts(domain),
            Column::Numbers(instances),
            Column::Numbers(vcpus),
            Column::Numbers(ram_mb),
        ] = hosts.columns.as_slice()
        else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        let known = |code: &u32| {
            domain
                .texts
                .get(*code as usize)
                .is_some_and(|text| !text.is_empty())
        };
        let all = domain
            .codes
            .iter()
            .zip(instances)
            .zip(vcpus.iter().zip(ram_mb));
        let all = all.map(|((code, instances), (vcpus, ram_mb))| Host {
            domain: Some(*code).filter(known),
            instances: *instances,
            free_vcpus: *vcpus,
            free_ram_mb: *ram_mb,
        });
        let awake = awake(all.clone());
        let taken = taken(&request);
        Ok(all
            .map(|host| score(host, taken, settings.keep_free_mb, &awake))
            .collect())
    }
}

fn taken(request: &Request) -> Taken {
    let mut taken = Taken::default();
    for amount in &request.resources {
        match amount.resource_class.as_str() {
            "VCPU" | "PCPU" => taken.vcpus += amount.amount as f64,
            "MEMORY_MB" => taken.memory_mb += amount.amount as f64,
            _ => {}
        }
    }
    taken
}

fn read(settings: &[Pair]) -> Result<Settings, String> {
    Settings::read(
        settings
            .iter()
            .map(|pair| (pair.key.as_str(), pair.value.as_str())),
    )
}

export!(Plugin);
