//! Private hypervisors with real guests: libvirt and QEMU from Debian's packages, and a tiny
//! virtual machine that is built from Debian's cloud kernel and a static busybox.
//!
//! The guest counts on its serial console (`HB 1`, `HB 2`, …), and says there what it was told; see
//! `guest/init`. Only root can make the namespaces in which a private libvirtd lives.

use crate::data_directory::DataDirectory;
use crate::error::{Error, Result};
use crate::process::{Process, ProcessCommand};
use crate::{Signal, eventually};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// What a node runs.
const NODE: &str = include_str!("node.sh");

/// How the guest becomes a domain: the agent's placeholders, and ours.
const DOMAIN: &str = include_str!("domain.xml");

/// The directory with the guest, if the caller has built it.
pub const ENV_GUEST_DIR: &str = "EBBTIDE_GUEST_DIR";

/// Set for the test process that runs in a network of its own.
const ENV_NETWORK: &str = "EBBTIDE_HARNESS_PRIVATE_NETWORK";

/// libvirt asks QEMU what it can do when it is started first: ten seconds on a busy machine.
const START: Duration = Duration::from_secs(90);

/// A quick answer of libvirt, on a machine that does other things.
const ANSWER: Duration = Duration::from_secs(60);

/// The virtual machine that tests run.
#[derive(Debug, Clone)]
pub struct TestGuest {
    dir: PathBuf,
    accelerator: String,
}

impl TestGuest {
    /// The guest, built if it is not there: seconds if Debian's archive is near. Built once for all
    /// tests.
    ///
    /// # Errors
    /// [`Error::Failed`] with what `devstack/lib/guest.sh` said.
    pub async fn build() -> Result<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let dir = std::env::var_os(ENV_GUEST_DIR)
            .map_or_else(|| source.join("target/guest"), PathBuf::from);
        let script = source.join("devstack/lib/guest.sh");
        run(tokio::process::Command::new("bash").arg(script).arg(&dir)).await?;
        let dir = std::fs::canonicalize(&dir).map_err(Error::io("resolve", &dir))?;
        let file = dir.join("accelerator");
        let accelerator = std::fs::read_to_string(&file).map_err(Error::io("read", &file))?;
        let accelerator = accelerator.trim().to_owned();
        Ok(Self { dir, accelerator })
    }

    /// `kvm` if hardware virtualisation works here, else `qemu`; libvirt's domain type.
    #[must_use]
    pub fn accelerator(&self) -> &str {
        &self.accelerator
    }

    /// The template of its domain, with the agent's placeholders.
    #[must_use]
    pub fn template(&self) -> String {
        // Translated code takes a quarter of the host's memory unless it is told otherwise.
        let features = match self.accelerator.as_str() {
            "kvm" => "",
            _ => "<tcg><tb-cache unit='MiB'>32</tb-cache></tcg>",
        };
        DOMAIN
            .replace("@GUEST@", &self.dir.display().to_string())
            .replace("@FEATURES@", features)
    }
}

/// A private libvirtd, in a network of its own unless the test is in one ([`in_private_network`]).
#[derive(Debug)]
pub struct Hypervisor {
    // Ends before its directory is removed.
    node: Process,
    home: DataDirectory,
    guest: TestGuest,
}

impl Hypervisor {
    /// A hypervisor without servers.
    ///
    /// # Errors
    /// [`Error::Failed`] if this is not root, [`Error::ProgramMissing`], what [`TestGuest::build`]
    /// answers, [`Error::TooSlow`].
    pub async fn start() -> Result<Self> {
        for program in ["libvirtd", "virsh", "unshare"] {
            crate::programs::find(program, "libvirt")?;
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Failed {
                program: "unshare".to_owned(),
                status: "not tried".to_owned(),
                output: "only root can make a private libvirtd; run the tests as root".to_owned(),
            });
        }
        let guest = TestGuest::build().await?;
        let home = DataDirectory::temporary("node")?;
        let node = spawn(&home, &guest)?;
        let this = Self { node, home, guest };
        this.answers().await?;
        Ok(this)
    }

    async fn answers(&self) -> Result<()> {
        let waited = async {
            while self.virsh(&["uri"]).await.is_err() && self.node.exit_status().is_none() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let in_time = tokio::time::timeout(START, waited).await.is_ok();
        if in_time && self.node.exit_status().is_none() {
            return Ok(());
        }
        Err(Error::TooSlow {
            name: "libvirtd".to_owned(),
            wanted: "an answer".to_owned(),
            deadline: START,
            tail: self.node.log_tail(),
        })
    }

    #[must_use]
    pub fn guest(&self) -> &TestGuest {
        &self.guest
    }

    /// libvirt's name for the connection.
    #[must_use]
    pub fn uri(&self) -> String {
        let socket = self.home.path().join("s/libvirt-sock");
        format!("qemu+unix:///system?socket={}", socket.display())
    }

    /// A directory that ends with it; short enough for sockets.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.home.path()
    }

    /// Runs one command of virsh and returns what it printed.
    ///
    /// # Errors
    /// [`Error::Failed`] with its complaint.
    pub async fn virsh(&self, words: &[&str]) -> Result<String> {
        let mut command = tokio::process::Command::new("virsh");
        command
            .args(["--quiet", "--connect", &self.uri()])
            .args(words);
        run(&mut command).await
    }

    /// Restarts libvirtd; the guests run on.
    ///
    /// # Errors
    /// [`Error::TooSlow`].
    pub async fn restart_libvirtd(&self) -> Result<()> {
        let before = self.libvirtd().await?;
        run(tokio::process::Command::new("kill").arg(before.to_string())).await?;
        eventually(ANSWER, async || match self.libvirtd().await {
            Ok(now) if now != before => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        self.answers().await
    }

    /// The process of libvirtd, as this process sees it.
    async fn libvirtd(&self) -> Result<u32> {
        let config = self.home.path().join("etc/libvirtd.conf");
        self.process_with(&format!("libvirtd -f {}", config.display()))
            .await
    }

    /// The process of a guest, as this process sees it.
    ///
    /// # Errors
    /// [`Error::Failed`] if there is none.
    pub async fn process_of(&self, domain: &str) -> Result<u32> {
        self.process_with(&format!("-name guest={domain},")).await
    }

    async fn process_with(&self, words: &str) -> Result<u32> {
        let mut found = None;
        let mut inside = vec![self.node.pid()];
        // Descendants of the node only: another test's guests have the same names.
        while let Some(pid) = inside.pop() {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
                .into_iter()
                .flatten();
            for task in tasks.flatten() {
                let children = std::fs::read_to_string(task.path().join("children"));
                inside.extend(
                    children
                        .unwrap_or_default()
                        .split_whitespace()
                        .filter_map(|c| c.parse::<u32>().ok()),
                );
            }
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(words) && !line.starts_with("bash ") {
                found = Some(pid);
            }
        }
        found.ok_or_else(|| Error::Failed {
            program: "looking for a process".to_owned(),
            status: "not found".to_owned(),
            output: words.to_owned(),
        })
    }

    /// The host loses its power and is switched on again: all guests are gone, what was on disk is
    /// there.
    ///
    /// # Errors
    /// [`Error::TooSlow`].
    pub async fn reboot(&mut self) -> Result<()> {
        self.node.signal(Signal::Kill)?;
        self.node.wait_exit(ANSWER).await?;
        // Both are in memory on a real host.
        for dir in ["run", "s"] {
            let dir = self.home.path().join(dir);
            if let Err(error) = std::fs::remove_dir_all(&dir) {
                return Err(Error::io("remove", &dir)(error));
            }
        }
        self.node = spawn(&self.home, &self.guest)?;
        self.answers().await
    }
}

fn spawn(home: &DataDirectory, guest: &TestGuest) -> Result<Process> {
    let script = home.write("node.sh", NODE)?;
    // A test in a network of its own has it for talking with its guests.
    let network = match std::env::var_os(ENV_NETWORK) {
        Some(_) => "shared",
        None => "own",
    };
    ProcessCommand::new("a private hypervisor", "bash")
        .arg(script)
        .arg(home.path())
        .arg(&guest.dir)
        .arg(network)
        .spawn(home.path().join("node.log"))
}

async fn run(command: &mut tokio::process::Command) -> Result<String> {
    let program = format!("{:?}", command.as_std());
    let failed = |status: String, output: String| Error::Failed {
        program: program.clone(),
        status,
        output,
    };
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| failed("not started".to_owned(), error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(failed(output.status.to_string(), said))
}

/// Runs the rest of this test in its own network namespace, where it may use any address, and with
/// private mounts. Call it first, and return if it returns false. `test` is the full name of the
/// test in its program.
///
/// # Errors
/// [`Error::Spawn`] if there is no way to make a network. [`Error::NoSuchTest`] if the program has
/// no test of that name, for then nothing was tested, and the program does not say so itself.
///
/// # Panics
/// If the test fails there.
pub fn in_private_network(test: &str) -> Result<bool> {
    if let Some(proof) = std::env::var_os(ENV_NETWORK) {
        let proof = PathBuf::from(proof);
        std::fs::write(&proof, test).map_err(Error::io("write", &proof))?;
        return Ok(true);
    }
    let failed = |source| Error::Spawn {
        name: "a test in a network of its own (only root can)".to_owned(),
        source,
    };
    let proof = tempfile::NamedTempFile::new().map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    let up = "ip link set lo up && exec \"$@\"";
    let status = std::process::Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", up, "sh"])
        .arg(&program)
        .args(["--exact", test, "--nocapture"])
        .env(ENV_NETWORK, proof.path())
        .status()
        .map_err(failed)?;
    assert!(
        status.success(),
        "{test} failed in its own network: {status}"
    );
    let ran = std::fs::read_to_string(proof.path()).map_err(failed)?;
    if ran != test {
        return Err(Error::NoSuchTest {
            test: test.to_owned(),
            program: program.display().to_string(),
        });
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_run_in_a_network_in_which_nothing_else_is() {
        let name = "hypervisor::tests::a_test_is_run_in_a_network_in_which_nothing_else_is";
        if !in_private_network(name).unwrap() {
            return;
        }
        // Of this process's network, unlike what /sys shows, which is that of the process that
        // mounted it.
        let devices = std::fs::read_to_string("/proc/self/net/dev").unwrap();
        let names: Vec<_> = devices
            .lines()
            .filter_map(|line| Some(line.split_once(':')?.0.trim()))
            .collect();
        assert_eq!(names, ["lo"]);
    }

    #[test]
    fn a_name_that_no_test_has_is_an_error_and_no_success() {
        let error = in_private_network("hypervisor::tests::misspelt").unwrap_err();
        assert_eq!(error.code(), "EB-HARNESS-014");
        assert!(error.to_string().contains("hypervisor::tests::misspelt"));
    }
}
