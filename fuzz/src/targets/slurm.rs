//! What Slurm says, what an operator and the controller have written: answers, lists of hosts,
//! settings, records. What is taken can be worked with.

use ebbtide_burst::report::{Baseline, report};
use ebbtide_burst::slurm::{MOST_HOSTS, hosts, jobs, nodes};
use ebbtide_burst::{BurstRecord, BurstSettings, Load, Manager, World};

/// The settings of the controller that looks at what was read.
const SETTINGS: &str = include_str!("../../seeds/slurm/burst.toml");

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(all) = hosts(text) {
        assert!(all.len() <= MOST_HOSTS);
        assert!(all.iter().all(|name| !name.contains(['[', ']', ','])));
    }
    match BurstSettings::parse(text) {
        Ok(settings) => {
            let manager = Manager::new(&settings);
            assert!(
                manager.is_ok()
                    || settings.age.model.is_some()
                    || !settings.age.job_hours.is_empty()
            );
        }
        Err(error) => assert!(error.code().starts_with("EB-BURST-")),
    }
    let settings = BurstSettings::parse(SETTINGS).expect("the seed");
    let jobs = jobs(text);
    if let Ok(jobs) = &jobs {
        let mut record = BurstRecord::default();
        record.learn(1, jobs, &settings.slurm);
        assert_eq!(record.learn(1, jobs, &settings.slurm), []);
    }
    let nodes = nodes(text);
    if jobs.is_ok() || nodes.is_ok() {
        let (jobs, nodes) = (jobs.unwrap_or_default(), nodes.unwrap_or_default());
        let world = World {
            nodes: &nodes,
            jobs: &jobs,
            instances: &[],
            budget_used_up: false,
            kept: &[],
        };
        let names = settings.nodes().expect("the seed");
        let load = Load::of(&world, &names, &settings.slurm);
        let mut manager = Manager::new(&settings).expect("the seed");
        let first = manager
            .look(0, &world, load)
            .expect("nothing has happened before");
        assert!(first.target <= 6);
        let again = manager.look(1, &world, load).expect("the same again");
        assert!(again.actions.is_empty(), "{:?}", again.actions);
    }
    if let Ok(record) = BurstRecord::parse(text)
        && record.jobs.len() <= 50
    {
        let made = report(&record, Baseline::Reckoned);
        assert_eq!(made.kinds.len(), 2);
    }
}
