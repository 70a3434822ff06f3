//! Where configuration is looked for when none is named (`oslo_config.cfg.find_config_files`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files and directories: `PROJECT.conf` and `PROGRAM.conf`, `PROJECT.conf.d` and `PROGRAM.conf.d`,
/// each where it is found first of `~/.PROJECT`, `~`, `/etc/PROJECT`, `/etc`, and a snap's own
/// places.
#[must_use]
pub fn default_paths(
    project: &str,
    program: &str,
    environment: &BTreeMap<String, String>,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    search(project, program, environment, &|path| path.exists())
}

fn search(
    project: &str,
    program: &str,
    environment: &BTreeMap<String, String>,
    exists: &dyn Fn(&Path) -> bool,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut places = Vec::new();
    if let Some(home) = environment.get("HOME") {
        places.push(Path::new(home).join(format!(".{project}")));
        places.push(PathBuf::from(home));
    }
    places.push(Path::new("/etc").join(project));
    places.push(PathBuf::from("/etc"));
    for snap in ["SNAP_COMMON", "SNAP"] {
        if let Some(snap) = environment.get(snap) {
            places.push(Path::new(snap).join("etc").join(project));
        }
    }
    let found = |extension: &str| {
        [project, program]
            .iter()
            .filter_map(|name| {
                places
                    .iter()
                    .map(|place| place.join(format!("{name}{extension}")))
                    .find(|path| exists(path))
            })
            .collect()
    };
    (found(".conf"), found(".conf.d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_wins_for_each_file() {
        let there = [
            "/home/x/nova.conf",
            "/etc/nova/nova.conf",
            "/etc/nova/nova-scheduler.conf",
            "/etc/nova/nova.conf.d",
        ];
        let exists = |path: &Path| there.iter().any(|known| Path::new(known) == path);
        let home = BTreeMap::from([("HOME".to_owned(), "/home/x".to_owned())]);
        let (files, dirs) = search("nova", "nova-scheduler", &home, &exists);
        assert_eq!(
            files,
            [
                PathBuf::from("/home/x/nova.conf"),
                PathBuf::from("/etc/nova/nova-scheduler.conf")
            ]
        );
        assert_eq!(dirs, [PathBuf::from("/etc/nova/nova.conf.d")]);
        let (files, _) = search("nova", "nova-scheduler", &BTreeMap::new(), &exists);
        assert_eq!(files[0], PathBuf::from("/etc/nova/nova.conf"));
    }
}
