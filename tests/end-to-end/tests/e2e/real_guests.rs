//! From a normal request to the victim that comes back, with real virtual machines on two private
//! hypervisors: what counts in the guest's memory goes on where it was.

use super::kit::{create, request, until, until_evacuation};
use ebbtide_harness::{Hypervisor, eventually};
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A guest boots in two seconds alone, and in twenty by software emulation on a machine that tests
/// many things.
const BOOT: Duration = Duration::from_secs(120);

/// Two hosts with room for one guest each, and what stands on them.
struct Scene {
    region: Region,
    nodes: BTreeMap<String, Hypervisor>,
    worker: v1::Server,
    /// What both hosts mount.
    shared: Option<tempfile::TempDir>,
}

pub(crate) fn driver(node: &Hypervisor, shared: Option<&tempfile::TempDir>) -> String {
    let dir = node.dir();
    let template = dir.join("domain.xml");
    std::fs::write(&template, node.guest().template()).unwrap();
    format!(
        r#"
[driver]
kind = "libvirt"
[driver.libvirt]
uri = "{uri}"
instances_dir = "{dir}/i"
run_dir = "{dir}/r"
template = "{template}"
domain_type = "{kind}"
shutdown_seconds = 0
{storage}
[driver.libvirt.inventory]
VCPU = {{ total = 1 }}
MEMORY_MB = {{ total = 96 }}
DISK_GB = {{ total = 4 }}
"#,
        uri = node.uri(),
        dir = dir.display(),
        template = template.display(),
        kind = node.guest().accelerator(),
        storage = shared.map_or_else(String::new, |shared| format!(
            "storage = {{ name = \"nfs-1\", dir = \"{}\" }}",
            shared.path().display()
        )),
    )
}

pub(crate) async fn flavor(region: &Region, name: &str, specs: &[(&str, &str)]) {
    let specs = specs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let flavor = v1::Flavor {
        name: name.to_owned(),
        vcpus: 1,
        ram_mb: 96,
        disk_gb: 1,
        extra_specs: specs.collect(),
        ..Default::default()
    };
    let mut admin = region.admin().await.unwrap();
    let create = v1::CreateFlavorRequest {
        flavor: Some(flavor),
    };
    admin.create_flavor(create).await.unwrap();
}

impl Scene {
    /// A normal guest on one host and a preemptible one, which counts, on the other.
    async fn new(grace: &str) -> Self {
        Self::on(grace, None).await
    }

    /// The same on storage that both hosts share.
    async fn on(grace: &str, shared: Option<tempfile::TempDir>) -> Self {
        let (a, b) = tokio::join!(Hypervisor::start(), Hypervisor::start());
        let nodes = [("host-A", a.unwrap()), ("host-B", b.unwrap())];
        let nodes: BTreeMap<String, Hypervisor> =
            nodes.map(|(name, node)| (name.to_owned(), node)).into();
        let region = Region::start(RegionOptions {
            hosts: nodes.keys().cloned().collect(),
            drivers: nodes
                .iter()
                .map(|(name, node)| (name.clone(), driver(node, shared.as_ref())))
                .collect(),
            region: "comeback = { first_seconds = 1, max_seconds = 4 }".to_owned(),
            ..RegionOptions::default()
        })
        .await
        .unwrap();
        flavor(&region, "normal", &[]).await;
        let specs = [
            ("ebbtide:preemptible", "true"),
            ("ebbtide:interruption", "hibernate"),
            ("ebbtide:grace_seconds", grace),
        ];
        flavor(&region, "worker", &specs).await;
        let (filler, _) = create(&region, "filler", request("normal", 1)).await;
        let (workers, _) = create(&region, "worker", request("worker", 1)).await;
        until(&region, &filler[0].id, "active").await;
        let worker = until(&region, &workers[0].id, "active").await;
        let scene = Self {
            region,
            nodes,
            worker,
            shared,
        };
        scene.counts_beyond(&scene.worker, 2).await;
        scene
    }

    fn console(&self, server: &v1::Server) -> String {
        let of_host = |host: &str| -> PathBuf { self.nodes[host].dir().join("i").join(&server.id) };
        let dir = match &self.shared {
            Some(shared) if server.id == self.worker.id => {
                let name = format!("{}.{}", self.worker.id, self.worker.host);
                shared.path().join("servers").join(name)
            }
            _ => of_host(&server.host),
        };
        let bytes = std::fs::read(dir.join("console.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text[..whole].to_owned()
    }

    /// How far a guest has counted.
    fn count(&self, server: &v1::Server) -> u64 {
        let console = self.console(server);
        let beats = console.lines().filter_map(|l| l.trim().strip_prefix("HB "));
        beats
            .filter_map(|n| n.parse().ok())
            .next_back()
            .unwrap_or(0)
    }

    async fn counts_beyond(&self, server: &v1::Server, from: u64) -> u64 {
        eventually(BOOT, async || match self.count(server) {
            now if now > from => Ok(now),
            now => Err(format!("{now}, not beyond {from}")),
        })
        .await
    }

    /// A normal request that needs the worker's room.
    async fn normal(&self, name: &str) -> v1::Server {
        let (servers, decision) = create(&self.region, name, request("normal", 1)).await;
        let victims = &decision.placements[0].victims;
        assert_eq!(victims[0].server_id, self.worker.id);
        servers[0].clone()
    }

    /// The normal one runs in the worker's place. Returns how far the worker had counted.
    async fn runs_in_its_place(&self, normal: &v1::Server) -> u64 {
        let kept = until(&self.region, &self.worker.id, "hibernated").await;
        assert!(
            ["hibernated", "waiting"].contains(&kept.state.as_str()),
            "{kept:?}"
        );
        assert!(
            !kept.state_since.is_empty() && !kept.state_reason.is_empty(),
            "{kept:?}"
        );
        let normal = until(&self.region, &normal.id, "active").await;
        assert_eq!(normal.host, self.worker.host);
        self.counts_beyond(&normal, 0).await;
        self.count(&self.worker)
    }

    /// The normal one is deleted, and the worker goes on by itself, with what it had in memory.
    async fn comes_back(&self, normal: &v1::Server, saved_at: u64) {
        let delete = v1::DeleteServerRequest {
            id: normal.id.clone(),
        };
        let mut servers = self.region.servers().await.unwrap();
        servers.delete_server(delete).await.unwrap();
        let back = until(&self.region, &self.worker.id, "active").await;
        assert_eq!(
            (back.host, back.state.as_str()),
            (self.worker.host.clone(), "active")
        );
        assert_eq!(back.fault_code, "");
        let after = self.counts_beyond(&self.worker, saved_at).await;
        assert!(after < saved_at + 60, "{saved_at} → {after}");
        let boots = self.console(&self.worker).matches("READY").count();
        assert_eq!(boots, 1, "it was booted anew");
    }
}

#[tokio::test]
async fn a_guest_that_made_room_comes_back_by_itself_and_goes_on_counting() {
    let scene = Scene::new("1").await;
    let normal = scene.normal("urgent").await;
    let saved_at = scene.runs_in_its_place(&normal).await;
    scene.comes_back(&normal, saved_at).await;
}

#[tokio::test]
async fn a_guest_whose_agent_is_killed_in_its_grace_period_makes_room_once_and_comes_back() {
    let mut scene = Scene::new("4").await;
    let normal = scene.normal("urgent").await;
    let (worker, host) = (scene.worker.id.clone(), scene.worker.host.clone());
    until_evacuation(&scene.region, &worker, "draining").await;
    scene.region.kill_agent(&host);
    scene.region.start_agent(&host).unwrap();
    let saved_at = scene.runs_in_its_place(&normal).await;
    scene.comes_back(&normal, saved_at).await;
    let list = v1::ListEvacuationsRequest {
        server_id: worker,
        ..Default::default()
    };
    let mut servers = scene.region.servers().await.unwrap();
    let told = servers.list_evacuations(list).await.unwrap().into_inner();
    let states: Vec<&str> = told.evacuations.iter().map(|e| e.state.as_str()).collect();
    assert_eq!(states, ["evacuated"]);
}

#[tokio::test]
async fn a_guest_whose_host_has_no_room_goes_on_counting_on_the_other_host_of_its_storage() {
    let shared = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(shared.path(), open).unwrap();
    let scene = Scene::on("1", Some(shared)).await;
    let normal = scene.normal("urgent").await;
    let saved_at = scene.runs_in_its_place(&normal).await;
    let mut servers = scene.region.servers().await.unwrap();
    let list = v1::ListServersRequest::default();
    let all = servers.list_servers(list).await.unwrap().into_inner();
    let filler = all.servers.iter().find(|s| s.name == "filler").unwrap();
    let delete = v1::DeleteServerRequest {
        id: filler.id.clone(),
    };
    servers.delete_server(delete).await.unwrap();
    let back = until(&scene.region, &scene.worker.id, "active").await;
    assert_eq!(back.host, filler.host);
    assert_ne!(back.host, scene.worker.host);
    let after = scene.counts_beyond(&scene.worker, saved_at).await;
    assert!(after < saved_at + 60, "{saved_at} → {after}");
    let console = scene.console(&scene.worker);
    assert_eq!(console.matches("READY").count(), 1, "it was booted anew");
    // And it is the owner's to delete there, with all that it has.
    let delete = v1::DeleteServerRequest {
        id: scene.worker.id.clone(),
    };
    servers.delete_server(delete).await.unwrap();
    until(&scene.region, &scene.worker.id, "deleted").await;
    assert!(scene.console(&scene.worker).is_empty());
}
