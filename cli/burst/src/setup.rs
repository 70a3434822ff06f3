//! What slurmctld needs: programs without arguments of their own, and lines in slurm.conf.

use crate::storage;
use ebbtide_burst::BurstSettings;
use ebbtide_burst::age::Ages;
use ebbtide_shell::errors::CliError;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Our tasks, and what slurm.conf calls them.
const PROGRAMS: [(&str, &str); 3] = [
    ("resume", "ResumeProgram"),
    ("suspend", "SuspendProgram"),
    ("resume-failed", "ResumeFailProgram"),
];

/// Writes the programs and prints the lines.
///
/// # Errors
/// The file system's.
pub(crate) fn run(
    settings: &BurstSettings,
    config: &Path,
    programs: &Path,
) -> Result<(), CliError> {
    let own = std::env::current_exe()?;
    let absolute = |path: &Path| std::path::absolute(path).map_err(storage("find", path));
    let (config, dir) = (absolute(config)?, absolute(programs)?);
    std::fs::create_dir_all(&dir).map_err(storage("make", &dir))?;
    let features = Ages::new(&settings.age)?.all_features().join(",");
    let feature = match features.as_str() {
        "" => String::new(),
        features => format!(" Feature={features}"),
    };
    say!("# slurm.conf: nodes that are instances when they are there.");
    say!(
        "NodeName={} State=CLOUD CPUs=... RealMemory=... Weight={}{feature}",
        settings.slurm.nodes,
        settings.age.weight
    );
    for (task, name) in PROGRAMS {
        let path = dir.join(format!("ebbtide-burst-{task}"));
        let log = settings.state_dir.join("programs.log");
        let text = format!(
            "#!/bin/sh\n# Written by `ebbtide-burst setup`: slurmctld calls this with a list of nodes.\nexec {} {task} --config {} \"$1\" >>{} 2>&1\n",
            quoted(&own),
            quoted(&config),
            quoted(&log)
        );
        std::fs::write(&path, text).map_err(storage("write", &path))?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).map_err(storage("make executable", &path))?;
        say!("{name}={}", path.display());
    }
    std::fs::create_dir_all(&settings.state_dir).map_err(storage("make", &settings.state_dir))?;
    say!(
        "# The controller gives nodes back; Slurm does it itself only if that has been away for an hour."
    );
    say!("SuspendTime=3600\nSuspendTimeout=30");
    say!(
        "# Longer than an image boots.\nResumeTimeout={}",
        settings.policy.launch_seconds.ceil()
    );
    say!(
        "# What slurmctld may ask of the cloud in a minute: all at once.\nResumeRate=0\nSuspendRate=0"
    );
    say!(
        "# A node that comes back is used; a job that lost its node is run again.\nReturnToService=2\nJobRequeue=1"
    );
    say!(
        "# Addresses are those from which nodes register.\nSlurmctldParameters=cloud_reg_addrs,idle_on_node_suspend"
    );
    say!(
        "# Nodes that are away are seen; without this, no job could request them.\nPrivateData=cloud"
    );
    say!("TreeWidth=65533");
    Ok(())
}

/// As one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
