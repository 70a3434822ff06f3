//! Files that people give to a program, and files that a program makes for them.
//!
//! Files to read may be compressed. The first bytes decide, not the name: a renamed file is read
//! all the same.

mod regular;

pub use regular::read_regular;

use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file cannot be read or written. The codes are those of `docs/reference/errors.md`.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file cannot be opened, read or decompressed.
    #[error("cannot read {}: {problem}", path.display())]
    Read {
        path: PathBuf,
        /// The message of the system or of the decoder.
        problem: String,
    },
    /// The file or its directory cannot be written.
    #[error("cannot write {}: {problem}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The message of the system.
        problem: String,
    },
}

impl FileError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "EB-SIM-001",
            Self::Write { .. } => "EB-SIM-008",
        }
    }

    fn unwritten(path: &Path, error: &std::io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            problem: error.to_string(),
        }
    }
}

/// Largest file after decompression, in bytes. A trace of 30 days of a whole region has 10 MB; what
/// is larger than this is a mistake or an attack.
const MAX_BYTES: u64 = 1 << 30;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The contents of a file, decompressed if it is gzip or zstd.
///
/// # Errors
/// [`FileError::Read`], also for a compressed file that is cut.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let wrong = |problem: String| FileError::Read {
        path: path.to_path_buf(),
        problem,
    };
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let raw = limited(file).map_err(&wrong)?;
    if raw.starts_with(GZIP) {
        limited(flate2::read::MultiGzDecoder::new(raw.as_slice()))
            .map_err(|problem| wrong(format!("gzip: {}", plain(problem))))
    } else if raw.starts_with(ZSTD) {
        unzstd(&raw).map_err(|problem| wrong(format!("zstd: {}", plain(problem))))
    } else {
        Ok(raw)
    }
}

/// Writes a file.
///
/// # Errors
/// [`FileError::Write`].
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), FileError> {
    std::fs::write(path, contents).map_err(|error| FileError::unwritten(path, &error))
}

/// Makes a directory and those above it.
///
/// # Errors
/// [`FileError::Write`].
pub fn create_directory(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(|error| FileError::unwritten(path, &error))
}

/// What the decoder says, in words of who has the file.
fn plain(problem: String) -> String {
    let ends = ["incomplete deflate", "UnexpectedEof", "unexpected end"];
    if ends.iter().any(|end| problem.contains(end)) {
        return "the file ends in the middle: it was cut off; get it again".to_owned();
    }
    problem
}

fn limited(reader: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("larger than {MAX_BYTES} bytes"));
    }
    Ok(bytes)
}

/// All frames of a zstd file: parallel compressors write several.
fn unzstd(mut raw: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while !raw.is_empty() {
        let frame =
            ruzstd::decoding::StreamingDecoder::new(&mut raw).map_err(|error| error.to_string())?;
        bytes.extend(limited(frame)?);
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!("larger than {MAX_BYTES} bytes"));
        }
    }
    Ok(bytes)
}
