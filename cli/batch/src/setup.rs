//! What slurmctld needs: programs without arguments of their own, and lines in slurm.conf.

use crate::pool::PoolOptions;
use crate::storage;
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
pub fn run(pool: &PoolOptions<'_>, config: &Path, programs: &Path) -> Result<(), CliError> {
    let own = std::env::current_exe()?;
    let absolute = |path: &Path| std::path::absolute(path).map_err(storage("find", path));
    let (config, dir) = (absolute(config)?, absolute(programs)?);
    std::fs::create_dir_all(&dir).map_err(storage("make", &dir))?;
    say!("# slurm.conf: nodes that are instances when they are there.");
    for group in &pool.groups {
        let feature = match group.features.join(",").as_str() {
            "" => String::new(),
            features => format!(" Feature={features}"),
        };
        say!(
            "NodeName={} State=CLOUD CPUs=... RealMemory=... Weight={}{feature}",
            folded(&group.nodes),
            group.weight
        );
    }
    for (task, name) in PROGRAMS {
        let path = dir.join(format!("ebbtide-batch-{task}"));
        let log = pool.state_dir.join("programs.log");
        let text = format!(
            "#!/bin/sh\n# Written by `ebbtide-batch setup`: slurmctld calls this with a list of nodes.\nexec {} {task} --config {} \"$1\" >>{} 2>&1\n",
            quoted(&own),
            quoted(&config),
            quoted(&log)
        );
        std::fs::write(&path, text).map_err(storage("write", &path))?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).map_err(storage("make executable", &path))?;
        say!("{name}={}", path.display());
    }
    std::fs::create_dir_all(&pool.state_dir).map_err(storage("make", &pool.state_dir))?;
    say!(
        "# The service gives nodes back; Slurm does it itself only if that has been away for an hour."
    );
    say!("SuspendTime=3600\nSuspendTimeout=30");
    say!(
        "# Longer than an image boots.\nResumeTimeout={}",
        pool.launch_seconds.ceil()
    );
    say!(
        "# What slurmctld may ask of the cloud in a minute: all at once.\nResumeRate=0\nSuspendRate=0"
    );
    say!(
        "# A node that comes back is used; a job that lost its node is run again.\nReturnToService=2\nJobRequeue=1"
    );
    say!(
        "# Addresses are those from which nodes register. Add cloud_dns if every node resolves the names\n# of all.\nSlurmctldParameters=cloud_reg_addrs,idle_on_node_suspend"
    );
    say!(
        "# Nodes that are away are seen; without this, no job could request them.\nPrivateData=cloud"
    );
    say!("TreeWidth=65533");
    Ok(())
}

/// Names as Slurm lists them: `c[1-6]` if they differ in a last number only, and count on.
fn folded(names: &[String]) -> String {
    let split = |name: &String| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (stem, number) = name.split_at(stem);
        let plain = !number.starts_with('0') && !number.is_empty();
        let number = plain.then(|| number.parse::<u64>().ok()).flatten()?;
        Some((stem.to_owned(), number))
    };
    let parts: Option<Vec<(String, u64)>> = names.iter().map(split).collect();
    match parts.as_deref() {
        Some([(stem, first), rest @ ..]) if !rest.is_empty() => {
            let follows = |(at, one): (u64, &(String, u64))| one.0 == *stem && one.1 == first + at;
            if (1..).zip(rest).all(follows) {
                return format!("{stem}[{first}-{}]", first + rest.len() as u64);
            }
            names.join(",")
        }
        _ => names.join(","),
    }
}

/// As one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
