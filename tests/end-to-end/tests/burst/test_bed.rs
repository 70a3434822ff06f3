//! The test bed: a region, a cluster, machines for instances, and the service beside slurmctld.

mod region;
mod settings;

use ebbtide_harness::{Process, ProcessCommand, Signal, eventually};
use ebbtide_integration_tests::{Region, bin};
use ebbtide_proto::v1;
use ebbtide_runtime::task::{self, Task};
use ebbtide_slurm::Slurm;
use region::{HOSTS, region_of};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Long enough for two busy cores.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// Nodes that stay, and nodes of the cloud.
const STAY: u16 = 2;
pub(crate) const CLOUD: u16 = 6;
/// The project of the cluster's instances.
const PROJECT: &str = "batch";

/// What a job of the tests is: it works for some seconds, and longer as long as its log is held. It
/// writes one line when it begins, when it has saved its work, and when it has ended.
const JOB: &str = r#"#!/bin/bash
saved=
trap 'saved=1; echo "saved $1 $SLURM_JOB_ID" >>$3' USR1
echo "start $1 $SLURM_JOB_ID $SLURMD_NODENAME ${SLURM_RESTART_COUNT:-0}" >>$3
work() { sleep "$1"; while [ -e "$2.hold" ]; do sleep 0.2; done; }
work "$2" "$3" & child=$!
wait $child; code=$?
[ -z "$saved" ] || { kill $child; exec sleep 300; }
[ $code = 0 ] || exit $code
echo "end $1 $SLURM_JOB_ID $SLURMD_NODENAME" >>$3
"#;

/// Everything, ended in this order.
pub(crate) struct TestBed {
    _machines: Option<Task>,
    cluster: Option<Process>,
    pub(crate) region: Option<Region>,
    pub(crate) slurm: Slurm,
    dir: tempfile::TempDir,
}

/// What the service beside slurmctld is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// The elastic partition.
    Elastic,
    /// Works.
    Batch,
    /// Both, each with its nodes.
    Both,
}

const PROGRAM: &str = "ebbtide-batch";

/// What a bed is to be like.
pub(crate) struct BedOptions {
    /// Whether there is a region.
    pub(crate) region: bool,
    /// Whether instances get machines.
    pub(crate) machines: bool,
    /// Slurm's ResumeTimeout, seconds.
    pub(crate) resume_timeout: u32,
}

/// So many ports behind one another that are free.
fn ports(count: u16) -> u16 {
    for _ in 0..200 {
        let first = ebbtide_harness::free_port().unwrap();
        let all: Vec<_> = (first..first.saturating_add(count))
            .map(|port| TcpListener::bind(("127.0.0.1", port)))
            .collect();
        if all.iter().all(Result::is_ok) {
            return first;
        }
    }
    panic!("no {count} free ports behind one another");
}

impl TestBed {
    pub(crate) async fn new(wanted: BedOptions) -> Self {
        Self::with(Beside::Elastic, wanted).await
    }

    /// A bed whose service is for this.
    pub(crate) async fn with(beside: Beside, wanted: BedOptions) -> Self {
        Self::with_lines(beside, wanted, &[]).await
    }

    /// The same with lines of slurm.conf; they count more than those of the bed.
    pub(crate) async fn with_lines(beside: Beside, wanted: BedOptions, lines: &[&str]) -> Self {
        let region = if wanted.region {
            Some(region_of(&HOSTS, "").await)
        } else {
            None
        };
        Self::on(region, beside, wanted, lines).await
    }

    /// A bed with the batch service on a region whose preemptible servers have a market: the more
    /// of six places are taken, the more they cost, from 0.01 to 0.10 an hour.
    pub(crate) async fn with_market(wanted: BedOptions) -> Self {
        let sections = "[region.market]\nenabled = true\ninterval_seconds = 1\nsteepness = 1\nstep_percent = 100\n";
        let region = region_of(&HOSTS, sections).await;
        Self::on(Some(region), Beside::Batch, wanted, &[]).await
    }

    async fn on(
        region: Option<Region>,
        beside: Beside,
        wanted: BedOptions,
        lines: &[&str],
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let conf = at("cluster/slurm.conf");
        let mut bed = Self {
            _machines: None,
            cluster: None,
            region,
            slurm: Slurm {
                conf: Some(conf),
                bin_dir: None,
                timeout: Duration::from_secs(20),
            },
            dir,
        };
        std::fs::write(bed.path("job.sh"), JOB).unwrap();
        match beside {
            Beside::Elastic => bed.settings("with", ""),
            Beside::Batch => bed.batch_settings("with", ""),
            Beside::Both => bed.both_settings("with"),
        };
        bed.programs("with").await;
        let program = |task: &str| {
            let path = bed.path(&format!("bin/{PROGRAM}-{task}"));
            path.display().to_string()
        };
        let timeout = wanted.resume_timeout;
        let mut power = vec![
            format!("ResumeProgram={}", program("resume")),
            format!("SuspendProgram={}", program("suspend")),
            format!("ResumeFailProgram={}", program("resume-failed")),
            format!("ResumeTimeout={timeout}\nSuspendTime=3600\nSuspendTimeout=2"),
        ];
        power.extend(lines.iter().map(|line| (*line).to_owned()));
        bed.start_cluster(&power).await;
        if wanted.machines {
            bed._machines = Some(bed.machines().await);
        }
        bed
    }

    /// A cluster whose first nodes of the cloud are the hosts of a region: Slurm's power saving
    /// lends them with the programs of `devstack/slurm-lending`.
    pub(crate) async fn lending(hosts: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("cluster/slurm.conf");
        let region = region_of(hosts, "").await;
        let endpoint = region.endpoint().unwrap();
        let mut bed = Self {
            _machines: None,
            cluster: None,
            region: Some(region),
            slurm: Slurm {
                conf: Some(conf),
                bin_dir: None,
                timeout: Duration::from_secs(20),
            },
            dir,
        };
        std::fs::write(bed.path("job.sh"), JOB).unwrap();
        let base = bed.dir.path().display();
        let programs = bin("ebbtide");
        let programs = programs.parent().unwrap().display();
        // A machine is a line of the data centre; see `devstack/lib/slurm.sh`.
        let settings = format!(
            "owner=slurm:burst deadline=5s patience=60 log={base}/lending.log\n\
             export EBBTIDE_ENDPOINT={endpoint} PATH={programs}:$PATH SLURM_CONF={base}/cluster/slurm.conf\n\
             lines() {{ flock {base}/lock bash -c \"$1\"; }}\n\
             start_node() {{ lines \"echo $1-lent $1 >>{base}/cluster/instances\"; }}\n\
             stop_node() {{ lines \"sed -i '/^$1-lent /d' {base}/cluster/instances\"; }}\n\
             host_of() {{ echo \"$1\"; }}\n"
        );
        std::fs::write(bed.path("lending.sh"), settings).unwrap();
        let script = |task: &str| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devstack/slurm-lending");
            let folder = folder.canonicalize().unwrap();
            let text = format!(
                "#!/bin/bash\nEBBTIDE_LENDING={} exec {}/{task} \"$@\"\n",
                bed.path("lending.sh").display(),
                folder.display()
            );
            let path = bed.path(task);
            std::fs::write(&path, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
            path.display().to_string()
        };
        let nodes = hosts.join(",");
        let power = [
            format!("ResumeProgram={}", script("resume")),
            format!("SuspendProgram={}", script("suspend")),
            "ResumeTimeout=60\nSuspendTime=3\nSuspendTimeout=2".to_owned(),
            format!("SuspendExcNodes=s[1-{STAY}]"),
            format!("PartitionName=lent Nodes={nodes} MaxTime=INFINITE State=UP"),
        ];
        bed.start_cluster(&power).await;
        bed
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Lets `setup` write what slurmctld calls.
    async fn programs(&self, name: &str) {
        let config = self.path(&format!("{name}.toml"));
        let process = self.burst(
            "setup",
            &config,
            &["--programs", self.path("bin").to_str().unwrap()],
        );
        let status = process.wait_exit(PATIENCE).await.unwrap();
        assert!(status.success(), "{}", process.log_tail());
    }

    /// `power`: lines of slurm.conf about power saving.
    async fn start_cluster(&mut self, power: &[String]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devstack/lib/slurm.sh");
        let dir = self.path("cluster");
        std::fs::create_dir_all(&dir).unwrap();
        let lines = [
            "ResumeRate=0\nSuspendRate=0\nReturnToService=2\nJobRequeue=1\nTreeWidth=65533".to_owned(),
            "SlurmctldParameters=cloud_reg_addrs,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=0".to_owned(),
            // The same nodes without instances, and a partition where nothing ever starts.
            format!("PartitionName=alone Nodes=s[1-{STAY}] MaxTime=INFINITE State=UP"),
            format!("PartitionName=batch Nodes=c[1-{CLOUD}] MaxTime=INFINITE State=UP"),
            format!("PartitionName=closed Nodes=s[1-{STAY}] MaxTime=INFINITE State=DOWN"),
        ];
        let process = ProcessCommand::new("a Slurm cluster", "/bin/bash")
            .arg(script)
            .arg("serve")
            .arg(&dir)
            .args([ports(1 + STAY + CLOUD), STAY, CLOUD].map(|number| number.to_string()))
            .args(power)
            .args(lines)
            .env("FEATURES", "cloud,fits_0.01h")
            .spawn(self.path("cluster.log"))
            .unwrap();
        self.cluster = Some(process);
        eventually(PATIENCE, async || {
            if let Some(status) = self.cluster.as_ref().unwrap().exit_status() {
                panic!("the cluster ended ({status}): `bash devstack/lib/packages.sh slurm` installs it; it needs root. {}", self.text("cluster.log"));
            }
            match self.path("cluster/ready").exists() {
                true => Ok(()),
                false => Err(self.text("cluster/log/slurmctld.log")),
            }
        })
        .await;
    }

    /// Ends the whole cluster without warning.
    pub(crate) fn kill_cluster(&mut self) {
        self.cluster.take().unwrap().kill();
    }

    /// A machine for each instance that is there: this is the data centre, no part of the product.
    async fn machines(&self) -> Task {
        let mut servers = self.region.as_ref().unwrap().servers().await.unwrap();
        let (file, next) = (self.path("cluster/instances"), self.path("cluster/next"));
        task::spawn("calls", async move {
            let mut looks = tokio::time::interval(Duration::from_millis(100));
            let mut frozen = std::collections::BTreeSet::new();
            loop {
                looks.tick().await;
                let Ok(answer) = servers.list_servers(list()).await else {
                    continue;
                };
                let mut word = |server: &v1::Server| match server.status.as_str() {
                    "active" | "evacuating" => {
                        frozen.remove(&server.id);
                        Some("")
                    }
                    "hibernated" => {
                        frozen.insert(server.id.clone());
                        Some(" frozen")
                    }
                    // One that comes back is frozen until it is active.
                    _ if frozen.contains(&server.id) && server.status != "deleting" => {
                        Some(" frozen")
                    }
                    _ => None,
                };
                let all = answer.into_inner().servers;
                let line = |server: &v1::Server| {
                    let word = word(server)?;
                    Some(format!("{} {}{word}\n", server.id, server.name))
                };
                let lines: String = all.iter().filter_map(line).collect();
                std::fs::write(&next, lines).unwrap();
                std::fs::rename(&next, &file).unwrap();
            }
        })
    }

    /// The cluster's instances that are not gone.
    pub(crate) async fn instances(&self) -> Vec<v1::Server> {
        let mut servers = self.region.as_ref().unwrap().servers().await.unwrap();
        servers
            .list_servers(list())
            .await
            .unwrap()
            .into_inner()
            .servers
    }

    /// A normal request for so many servers as large as nodes: it takes the room of as many
    /// instances as it needs.
    pub(crate) async fn preempt(&self, count: u32) {
        self.others(count, "node").await;
    }

    /// A request of another project for so many servers.
    pub(crate) async fn others(&self, count: u32, flavor: &str) {
        let request = v1::CreateServersRequest {
            name: "urgent".to_owned(),
            request: Some(v1::PlacementRequest {
                count,
                flavor: flavor.to_owned(),
                project_id: "corporate".to_owned(),
                ..Default::default()
            }),
            max_price: String::new(),
        };
        let mut servers = self.region.as_ref().unwrap().servers().await.unwrap();
        servers.create_servers(request).await.unwrap();
    }

    /// The servers of the other project end.
    pub(crate) async fn end_normal_servers(&self) {
        self.end_some(usize::MAX, &[]).await;
    }

    /// So many of them end, on hosts that keep no hibernated server.
    pub(crate) async fn end_normal_servers_elsewhere(&self, count: usize) {
        let kept = self.instances().await;
        let kept: Vec<String> = kept
            .into_iter()
            .filter(|one| one.status == "hibernated")
            .map(|one| one.host)
            .collect();
        self.end_some(count, &kept).await;
    }

    async fn end_some(&self, count: usize, not_on: &[String]) {
        let mut servers = self.region.as_ref().unwrap().servers().await.unwrap();
        let request = v1::ListServersRequest {
            project_id: "corporate".to_owned(),
            ..Default::default()
        };
        let all = servers.list_servers(request).await.unwrap().into_inner();
        let all = all.servers.into_iter();
        for one in all.filter(|one| !not_on.contains(&one.host)).take(count) {
            let request = v1::DeleteServerRequest { id: one.id };
            servers.delete_server(request).await.unwrap();
        }
    }

    /// Starts the program beside slurmctld.
    pub(crate) fn burst(&self, task: &str, config: &Path, more: &[&str]) -> Process {
        let name = config.file_stem().unwrap().to_string_lossy().into_owned();
        ProcessCommand::new(PROGRAM, bin(PROGRAM))
            .arg(task)
            .arg("--config")
            .arg(config)
            .args(more.iter().copied())
            .spawn(self.path(&format!("{task}-{name}.log")))
            .unwrap()
    }

    /// Ends a controller as an operator would.
    pub(crate) async fn end(&self, controller: Process) {
        controller.signal(Signal::Term).unwrap();
        let status = controller.wait_exit(PATIENCE).await.unwrap();
        assert!(status.success(), "{}", controller.log_tail());
    }

    /// Submits a job of two processors; what it does is appended to the file `out`.
    pub(crate) async fn submit(&self, partition: &str, name: &str, seconds: u32, out: &str) {
        let script = self.path("job.sh").display().to_string();
        let out = self.path(out).display().to_string();
        let seconds = seconds.to_string();
        let arguments = [
            "--parsable",
            "-p",
            partition,
            "-c",
            "2",
            "-J",
            name,
            "-o",
            "/dev/null",
            &script,
            name,
            &seconds,
            &out,
        ];
        self.slurm.run("sbatch", &arguments).await.unwrap();
    }

    /// Lets jobs that write to the file `out` work on until [`Self::release`].
    pub(crate) fn hold(&self, out: &str) {
        std::fs::write(self.path(&format!("{out}.hold")), "").unwrap();
    }

    /// Lets jobs that write to the file `out` end once they have worked long enough.
    pub(crate) fn release(&self, out: &str) {
        std::fs::remove_file(self.path(&format!("{out}.hold"))).unwrap();
    }

    /// Waits until all jobs are over.
    pub(crate) async fn all_over(&self) {
        eventually(2 * PATIENCE, async || {
            let jobs = self.slurm.jobs().await.map_err(|error| error.to_string())?;
            let open: Vec<String> = jobs
                .iter()
                .filter(|job| !job.is_over())
                .map(|job| {
                    format!(
                        "{} {} {} {:?}",
                        job.name, job.state_word, job.reason, job.nodes
                    )
                })
                .collect();
            if open.is_empty() {
                Ok(())
            } else {
                Err(format!("{open:?}"))
            }
        })
        .await;
    }

    /// Runs `ebbtide batch` against the service of this name; its JSON.
    pub(crate) async fn batch(&self, name: &str, arguments: &[&str]) -> serde_json::Value {
        let socket = format!("unix:{}", self.path(&format!("{name}.sock")).display());
        let mut all = vec!["batch", "--service", &socket];
        all.extend(arguments);
        self.ebbtide(&all).await
    }

    /// Runs `ebbtide`, which has to fail; what it says.
    pub(crate) async fn refused(&self, arguments: &[&str]) -> String {
        let process = ProcessCommand::new("ebbtide", bin("ebbtide"))
            .args(arguments.iter().copied())
            .spawn(self.path("refused.log"))
            .unwrap();
        let status = process.wait_exit(PATIENCE).await.unwrap();
        assert!(!status.success(), "{}", process.log_tail());
        process.log_tail()
    }

    /// Runs `ebbtide` to its end; its JSON.
    pub(crate) async fn ebbtide(&self, arguments: &[&str]) -> serde_json::Value {
        let out = self.path("answer.json");
        let process = ProcessCommand::new("ebbtide", "/bin/sh")
            .args(["-c", "out=$1; shift; exec \"$@\" > \"$out\"", "sh"])
            .arg(&out)
            .arg(bin("ebbtide"))
            .args(arguments.iter().copied())
            .args(["--output", "json"])
            .env("SLURM_CONF", self.path("cluster/slurm.conf"))
            .spawn(self.path("ebbtide.log"))
            .unwrap();
        let status = process.wait_exit(PATIENCE).await.unwrap();
        assert!(status.success(), "{}", process.log_tail());
        serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap()
    }
}

fn list() -> v1::ListServersRequest {
    v1::ListServersRequest {
        project_id: PROJECT.to_owned(),
        ..Default::default()
    }
}

/// Lines of a log that begin so, by their second word, counted.
pub(crate) fn counted(log: &str, word: &str) -> std::collections::BTreeMap<String, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for line in log.lines() {
        let mut words = line.split(' ');
        if words.next() == Some(word) {
            *counts.entry(words.next().unwrap().to_owned()).or_default() += 1;
        }
    }
    counts
}
