//! `ebbtide run` as a process: what it does to others, and what others do to it.

use crate::fake::{Fake, host};
use ebbtide_proto::v1::Flavor;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job in a folder of its own.
struct Job {
    home: tempfile::TempDir,
    options: Vec<String>,
    command: String,
}

impl Job {
    fn new(options: &[&str], command: &str) -> Self {
        let options = options.iter().map(|word| (*word).to_owned());
        Self {
            home: tempfile::tempdir().unwrap(),
            options: options.collect(),
            command: command.to_owned(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn begin(&self) -> Child {
        let said = std::fs::File::create(self.path("said")).unwrap();
        Command::new(env!("CARGO_BIN_EXE_ebbtide"))
            .args(["--project", "default", "run", "--state-dir", "state"])
            .args(&self.options)
            .args(["--", "sh", "-c", &self.command])
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Waits until this is so.
    async fn until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let wait = async {
            while !so(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("never {what}: {}", self.text("said")));
    }

    async fn end(&self, run: &mut Child) -> Option<i32> {
        let ended = tokio::time::timeout(PATIENCE, run.wait()).await;
        ended.expect("its end").unwrap().code()
    }
}

fn ask_to_stop(run: &Child) {
    let pid = i32::try_from(run.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
}

fn there(pid: &str) -> bool {
    Path::new(&format!("/proc/{}", pid.trim())).exists()
}

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

const HERE: [&str; 4] = ["--metadata", "none", "--checkpoint-command", "true"];

#[tokio::test]
async fn a_command_that_another_process_has_ended_is_not_done_and_goes_on() {
    // A machine that is shut down sends SIGTERM to everybody; the second time the command is let
    // alone.
    let job = Job::new(&HERE, "[ -e once ] && exit 7; touch once; kill -TERM $$");
    let mut run = job.begin();
    assert_eq!(job.end(&mut run).await, Some(143), "{}", job.text("said"));
    let said = job.text("said");
    assert!(
        said.contains("signal 15") && said.contains("goes on"),
        "{said}"
    );
    let mut run = job.begin();
    assert_eq!(job.end(&mut run).await, Some(7), "{}", job.text("said"));
    assert!(!job.text("said").contains("has ended already"));
}

#[tokio::test]
async fn a_checkpoint_that_is_given_up_takes_nothing_of_the_job_with_it() {
    let options = [
        "--metadata",
        "none",
        "--every",
        "0.2s",
        "--checkpoint-timeout",
        "0.3s",
        "--checkpoint-command",
        "sleep 1000",
    ];
    // A worker whose parent has ended, as daemons are.
    let job = Job::new(
        &options,
        "(setsid sleep 1000 & echo $! > worker); sleep 1000",
    );
    let mut run = job.begin();
    job.until("a checkpoint is given up", |job| {
        job.text("said").contains("was cut off")
    })
    .await;
    assert!(alive(&job.text("worker")), "{}", job.text("said"));
    ask_to_stop(&run);
    ask_to_stop(&run);
    assert_eq!(job.end(&mut run).await, Some(130), "{}", job.text("said"));
    assert!(!alive(&job.text("worker")), "it is ended with the job");
}

#[tokio::test]
async fn orphans_that_have_ended_do_not_keep_their_process_ids() {
    let job = Job::new(&HERE, "(sleep 0.1 & echo $! > orphan); sleep 1000");
    let mut run = job.begin();
    job.until("the orphan is gone", |job| {
        let orphan = job.text("orphan");
        orphan.ends_with('\n') && !there(&orphan)
    })
    .await;
    ask_to_stop(&run);
    assert_eq!(job.end(&mut run).await, Some(130), "{}", job.text("said"));
}

#[tokio::test]
async fn a_checkpoint_whose_folder_is_gone_is_not_taken_for_the_beginning() {
    let options = [
        "--metadata",
        "none",
        "--every",
        "0.2s",
        "--checkpoint-command",
        "echo x > $EBBTIDE_CHECKPOINT_DIR/x",
    ];
    let job = Job::new(&options, "echo \"from $EBBTIDE_RESTORE_DIR\"; sleep 1000");
    let mut run = job.begin();
    job.until("two checkpoints are complete", |job| {
        job.text("said").matches("is complete").count() >= 2
    })
    .await;
    ask_to_stop(&run);
    job.end(&mut run).await;
    let kept = std::fs::read_dir(job.path("state/checkpoints")).unwrap();
    let mut kept: Vec<PathBuf> = kept.map(|entry| entry.unwrap().path()).collect();
    kept.sort();
    let [older, newer] = &kept[..] else {
        panic!("two are kept: {kept:?}");
    };
    std::fs::remove_dir_all(newer).unwrap();
    let mut run = job.begin();
    let from = format!("from {}\n", older.canonicalize().unwrap().display());
    job.until("it goes on from the one before", |job| {
        job.text("state/stdout").ends_with(&from)
    })
    .await;
    assert!(job.text("said").contains("is not there any more"));
    ask_to_stop(&run);
    job.end(&mut run).await;
}

async fn region() -> Fake {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.keeps_ids = true;
        state.hosts = vec![host("host-A", 8, 16_000)];
        state.flavors = vec![Flavor {
            id: crate::fake::id(1),
            name: "spot".to_owned(),
            vcpus: 1,
            ram_mb: 1_000,
            preemptible: true,
            ..Flavor::default()
        }];
    });
    fake
}

fn beside(fake: &Fake, more: &[&str], command: &str) -> Job {
    let endpoint = fake.endpoint();
    let mut options = vec!["--endpoint", &endpoint, "--checkpoint-command", "true"];
    options.extend(["--poll", "0.05s"]);
    options.extend(more);
    Job::new(&options, command)
}

#[tokio::test]
async fn the_most_that_is_paid_goes_with_the_request_for_a_server() {
    let fake = region().await;
    let job = beside(&fake, &["--flavor", "spot", "--max-price", "0.02"], "true");
    let mut run = job.begin();
    assert_eq!(job.end(&mut run).await, Some(0), "{}", job.text("said"));
    let log = fake.with(|state| state.log.clone());
    assert_eq!(log[0], "create run-1 spot at most 0.02");
    assert!(log.iter().any(|line| line == "delete run-1"), "{log:?}");
}

#[tokio::test]
async fn what_can_never_be_had_ends_the_run_instead_of_being_asked_for_again_and_again() {
    let fake = region().await;
    let job = beside(&fake, &["--flavor", "no-such"], "true");
    let mut run = job.begin();
    let code = job.end(&mut run).await;
    let said = job.text("said");
    assert!(
        code == Some(4) && said.contains("no-such"),
        "{code:?} {said}"
    );
}

#[tokio::test]
async fn a_server_that_is_being_made_is_written_down_first_and_deleted_if_the_run_is_stopped() {
    let fake = region().await;
    fake.with(|state| state.create_takes = Duration::from_millis(1_500));
    let job = beside(&fake, &["--flavor", "spot"], "true");
    let mut run = job.begin();
    let asked = fake.clone();
    job.until("a server is asked for", |_| {
        asked.with(|state| state.creating == 1)
    })
    .await;
    let state = job.text("state/state");
    ask_to_stop(&run);
    assert_eq!(job.end(&mut run).await, Some(130), "{}", job.text("said"));
    let log = fake.with(|state| state.log.clone());
    assert!(log.iter().any(|line| line == "delete run-1"), "{log:?}");
    let made = fake.with(|state| state.servers[0].id.clone());
    assert!(state.contains(&format!("\"server\":\"{made}\"")), "{state}");
}
