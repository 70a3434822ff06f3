//! The configuration of the service of a test bed.

use super::{CLOUD, PROJECT, TestBed};
use ebbtide_integration_tests::bin;
use std::path::PathBuf;

impl TestBed {
    /// Writes the configuration NAME.toml of a service with an elastic partition; `policy` is added
    /// to its policy.
    pub(crate) fn settings(&self, name: &str, policy: &str) -> PathBuf {
        let endpoint = self.region.as_ref().map_or_else(
            || "http://127.0.0.1:1".to_owned(),
            |region| region.endpoint().unwrap(),
        );
        let text = self.head(name, "", &endpoint)
            + &elastic(&format!("c[1-{CLOUD}]"), 2)
            + "[policy]\nlaunch_seconds = 60\nlaunch_again_seconds = 3\ncheckpoint_seconds = 1\n"
            + policy;
        let path = self.path(&format!("{name}.toml"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes the configuration NAME.toml of a batch service: four nodes for preemptible servers
    /// and two for normal ones. `policy` is added to its policy.
    pub(crate) fn batch_settings(&self, name: &str, policy: &str) -> PathBuf {
        let endpoint = self.region.as_ref().unwrap().endpoint().unwrap();
        let text = self.head(name, "partition = \"batch\"\n", &endpoint)
            + &types("c[1-4]", "c[5-6]")
            + POLICY
            + policy;
        let path = self.path(&format!("{name}.toml"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes the configuration NAME.toml of a service for works, on three nodes, and for an
    /// elastic partition of three others.
    pub(super) fn both_settings(&self, name: &str) -> PathBuf {
        let endpoint = self.region.as_ref().unwrap().endpoint().unwrap();
        let text = self.head(name, "partition = \"batch\"\n", &endpoint)
            + &types("c[1-2]", "c3")
            + &elastic("c[4-6]", 1)
            + POLICY;
        let path = self.path(&format!("{name}.toml"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// What every configuration begins with; `slurm` is added to that table.
    fn head(&self, name: &str, slurm: &str, endpoint: &str) -> String {
        let base = self.dir.path().display();
        let ebbtide = bin("ebbtide").display().to_string();
        format!(
            "state_dir = \"{base}/{name}\"\nlisten = \"unix:{base}/{name}.sock\"\npoll_seconds = 0.3\n\
             [slurm]\nconf = \"{base}/cluster/slurm.conf\"\nebbtide = \"{ebbtide}\"\n{slurm}\
             [region]\nendpoint = \"{endpoint}\"\nproject = \"{PROJECT}\"\n"
        )
    }
}

/// The policy of a service for works.
const POLICY: &str = "[policy]\nspare_seconds = 3\nboot_seconds = 10\nlaunch_seconds = 60\n\
    launch_again_seconds = 3\ncheckpoint_seconds = 3\nmargin_seconds = 5\nlength_seconds = 10\n";

/// Types of preemptible servers on these nodes, and of normal ones on those.
fn types(spot: &str, normal: &str) -> String {
    let ty = |name: &str, nodes: &str, flavor: &str, market: &str, more: &str| {
        format!(
            "[[types]]\nname = \"{name}\"\nnodes = \"{nodes}\"\nflavor = \"{flavor}\"\nmarket = \"{market}\"\n\
             vcpus = 2\nmemory_mb = 4000\nprice = {more}\n"
        )
    };
    let model = "\"0.10\"\nmodel = \"uniform:max=24\"";
    ty("spot", spot, "p.node", "preemptible", model)
        + &ty("normal", normal, "node", "on-demand", "\"0.30\"")
}

/// An elastic partition of these nodes, three times as many as `short_servers`.
fn elastic(nodes: &str, short_servers: u32) -> String {
    format!(
        "[elastic]\nnodes = \"{nodes}\"\nflavor = \"p.node\"\nlong_partitions = [\"long\"]\nshort_servers = {short_servers}\n\
         on_demand_price = \"0.30\"\npreemptible_price = \"0.10\"\nthreshold = 0.25\nrelease_seconds = 2\nmargin_seconds = 2\n\
         [elastic.age]\nfeatures = [\"cloud\"]\nmodel = \"uniform:max=0.5\"\njob_hours = [0.01]\n"
    )
}
