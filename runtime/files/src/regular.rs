//! Reading files that an operator names: a device or a pipe is refused, and so is a file without
//! end.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// The system's; something else than a regular file; a larger one.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let unfit = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
    // Before it is opened: opening a pipe waits for its other end.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(unfit("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    // What it says of its size is no promise.
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(unfit(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn devices_pipes_directories_and_large_files_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        for path in [Path::new("/dev/zero"), &fifo, dir.path()] {
            let error = read_regular(path, 100).unwrap_err();
            assert!(error.to_string().contains("regular"), "{path:?}: {error}");
        }
        let file = dir.path().join("file");
        fs::write(&file, [7; 101]).unwrap();
        let error = read_regular(&file, 100).unwrap_err();
        assert!(error.to_string().contains("100 bytes"), "{error}");
        assert_eq!(read_regular(&file, 101).unwrap(), [7; 101]);
    }
}
