//! What Slurm says, what an operator and the controller have written: answers, lists of hosts,
//! settings, records. What is taken can be worked with.

use ebbtide_batch::BatchSettings;
use ebbtide_burst::report::report;
use ebbtide_burst::slurm::{MOST_HOSTS, hosts, jobs, nodes};
use ebbtide_burst::{BurstRecord, ClusterSnapshot, Load, Manager};

/// The settings of the service that looks at what was read.
const SETTINGS: &str = include_str!("../../seeds/slurm/elastic.toml");

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(all) = hosts(text) {
        assert!(all.len() <= MOST_HOSTS);
        assert!(all.iter().all(|name| !name.contains(['[', ']', ','])));
    }
    match BatchSettings::parse(text) {
        Ok(settings) => {
            if let Some(elastic) = &settings.elastic {
                let options = elastic.manager_options(settings.node_times());
                Manager::new(options.expect("it was checked")).expect("it was checked");
            }
        }
        Err(error) => assert_eq!(error.code(), "EB-BATCH-001"),
    }
    let settings = BatchSettings::parse(SETTINGS).expect("the seed");
    let elastic = settings.elastic.as_ref().expect("the seed");
    let options = elastic.manager_options(settings.node_times());
    let options = options.expect("the seed");
    let jobs = jobs(text);
    if let Ok(jobs) = &jobs {
        let mut record = BurstRecord::default();
        record.learn(1, jobs, elastic);
        assert_eq!(record.learn(1, jobs, elastic), []);
    }
    let nodes = nodes(text);
    if jobs.is_ok() || nodes.is_ok() {
        let (jobs, nodes) = (jobs.unwrap_or_default(), nodes.unwrap_or_default());
        let world = ClusterSnapshot {
            nodes: &nodes,
            jobs: &jobs,
            instances: &[],
            budget_used_up: false,
            kept: &[],
        };
        let load = Load::of(&world, &options.nodes, elastic);
        let mut manager = Manager::new(options).expect("the seed");
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
        let made = report(&record, |_| true);
        assert_eq!(made.kinds.len(), 2);
    }
}
