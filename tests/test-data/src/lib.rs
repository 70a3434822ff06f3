//! Public data for tests: the real files where they are, else small synthetic ones of the same
//! format.
//!
//! The real files are not part of the repository. They lie in the directory that `EBBTIDE_DATA`
//! names, or in `../shared/data` beside the checkout. Where that directory does not exist, [`data`]
//! makes a reduced file with a generator of its own and says so: in the test's output, and in
//! `target/reduced-data/used`, which `./devstack/test` shows at its end. A test then checks what
//! must hold on any data, and only the figures of the papers stay unchecked. `EBBTIDE_DATA=reduced`
//! asks for that.

mod make;
mod random;
mod zstd;

use std::io::Write;
use std::path::{Path, PathBuf};

/// Names the directory of the real data, or is `reduced`.
pub const ENV_DATA: &str = "EBBTIDE_DATA";

/// A file for a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Where it is.
    pub path: PathBuf,
    /// It was made here, and no figure of a paper can be expected of it.
    pub reduced: bool,
}

/// The file `SET/NAME` of the public data.
///
/// # Panics
/// If the directory of the data exists and the file is not in it, if `EBBTIDE_DATA` names no
/// directory, or if there is no generator for this file.
#[must_use]
pub fn data(file: &str) -> Data {
    match root(std::env::var_os(ENV_DATA).map(PathBuf::from), &beside()) {
        Ok(Some(root)) => real(&root, file),
        Ok(None) => reduced(file),
        Err(problem) => panic!("{problem}"),
    }
}

/// The directory with all sets of the public data, real or reduced; for commands that name several
/// files.
///
/// # Panics
/// As [`data`].
#[must_use]
pub fn directory(files: &[&str]) -> Data {
    let mut found = files.iter().map(|file| data(file)).collect::<Vec<_>>();
    let last = found.pop().unwrap_or_else(|| panic!("name a file"));
    let up = last.path.parent().and_then(Path::parent);
    Data {
        path: up.unwrap_or(&last.path).to_owned(),
        reduced: last.reduced,
    }
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn beside() -> PathBuf {
    checkout().join("../shared/data")
}

/// The directory of the real data; nothing where reduced ones are to be made.
fn root(named: Option<PathBuf>, beside: &Path) -> Result<Option<PathBuf>, String> {
    match named {
        Some(named) if named.as_os_str() == "reduced" => Ok(None),
        Some(named) if named.is_dir() => Ok(Some(named)),
        Some(named) => Err(format!(
            "{ENV_DATA} names {}, which is no directory; unset it, or write reduced for small synthetic files",
            named.display()
        )),
        None => Ok(beside.is_dir().then(|| beside.to_owned())),
    }
}

fn real(root: &Path, file: &str) -> Data {
    // Or the directory of one set alone.
    let alone = Path::new(file).file_name().map(|name| root.join(name));
    let places = [Some(root.join(file)), alone];
    let path = places.into_iter().flatten().find(|path| path.is_file());
    let path = path.unwrap_or_else(|| {
        panic!(
            "{} has no {file}: complete it, name another one with {ENV_DATA}, or write {ENV_DATA}=reduced for small synthetic files",
            root.display()
        )
    });
    Data {
        path,
        reduced: false,
    }
}

#[allow(clippy::print_stderr)] // The reader of the test's output has to know it.
fn reduced(file: &str) -> Data {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| checkout().join("target"), PathBuf::from);
    let home = target.join("reduced-data");
    let path = home.join(file);
    write(&path, &make::file(file)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let test = std::thread::current();
    let line = format!("{} on {file}\n", test.name().unwrap_or("a test"));
    eprint!("reduced data: {line}");
    let used = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(home.join("used"));
    used.and_then(|mut used| used.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("{}: {error}", home.display()));
    Data {
        path,
        reduced: true,
    }
}

/// Several tests may write the same file at once, and read it at once.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(path);
    std::fs::create_dir_all(dir)?;
    let thread = format!("{:?}", std::thread::current().id());
    let number: String = thread.chars().filter(char::is_ascii_digit).collect();
    let draft = path.with_extension(format!("{}-{number}", std::process::id()));
    std::fs::write(&draft, bytes)?;
    std::fs::rename(draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_data_are_taken_where_their_directory_is_and_reduced_ones_where_it_is_not() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let nowhere = here.join("nowhere");
        assert_eq!(root(None, here), Ok(Some(here.to_owned())));
        assert_eq!(root(None, &nowhere), Ok(None));
        assert_eq!(
            root(Some(here.to_owned()), &nowhere),
            Ok(Some(here.to_owned()))
        );
        assert_eq!(root(Some("reduced".into()), here), Ok(None));
        assert!(
            root(Some(nowhere), here)
                .unwrap_err()
                .contains("is no directory")
        );
    }

    #[test]
    fn a_reduced_file_is_the_same_each_time_and_its_use_is_written_down() {
        for file in make::FILES {
            let (first, second) = (reduced(file), reduced(file));
            assert!(first.reduced && first == second);
            let bytes = std::fs::read(&first.path).unwrap();
            assert_eq!(bytes, make::file(file), "{file}");
            assert!(
                bytes.len() > 1_000 && bytes.len() < 2_000_000,
                "{file}: {}",
                bytes.len()
            );
            let used = first.path.ancestors().nth(2).unwrap().join("used");
            let used = std::fs::read_to_string(used).unwrap();
            let line = format!(
                "a_reduced_file_is_the_same_each_time_and_its_use_is_written_down on {file}"
            );
            assert!(used.contains(&line), "{used}");
        }
    }

    #[test]
    #[should_panic(expected = "complete it")]
    fn a_directory_that_lacks_a_file_is_no_reason_for_a_reduced_one() {
        real(
            Path::new(env!("CARGO_MANIFEST_DIR")),
            "ec2-spot-2010/none.csv",
        );
    }
}
