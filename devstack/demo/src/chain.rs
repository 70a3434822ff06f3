//! Work that keeps a processor busy and whose result can be checked: SHA-256 of SHA-256 of …, so
//! many rounds. No round can be left out, and every round is needed for the result.
//!
//! On SIGUSR1 it writes where it is to a file and goes on; it can begin from such a file.

use anyhow::{Context, Result, bail};
use ebbtide_runtime::clock;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How many rounds are computed between two looks whether the state is wanted: milliseconds.
const BATCH: u64 = 1_000;

/// How long it is measured how quick this machine is.
const MEASURED: Duration = Duration::from_millis(500);

/// Where the work is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chain {
    done: u64,
    value: [u8; 32],
}

impl Chain {
    fn new() -> Self {
        Self {
            done: 0,
            value: [0; 32],
        }
    }

    fn go_on(&mut self, until: u64) {
        while self.done < until {
            self.value = Sha256::digest(self.value).into();
            self.done += 1;
        }
    }

    fn hex(&self) -> String {
        self.value
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn text(&self) -> String {
        format!("{} {}\n", self.done, self.hex())
    }

    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        let parsed = text.trim_end().split_once(' ').and_then(|(done, hex)| {
            let bytes: Option<Vec<u8>> = (0..hex.len().min(64))
                .step_by(2)
                .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
                .collect();
            Some(Self {
                done: done.parse().ok()?,
                value: bytes?.try_into().ok()?,
            })
        });
        parsed.with_context(|| format!("{}: not a state of the chain", path.display()))
    }

    /// Afterwards either all of it is there or what was there before.
    fn write(&self, path: &Path) -> Result<()> {
        let new = path.with_extension("new");
        let mut file = fs::File::create(&new)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        Ok(())
    }
}

/// Computes `rounds` rounds, from the state in `resume` if there is one, and returns the result.
///
/// # Errors
/// A state that cannot be read or written.
pub(crate) async fn run(
    rounds: u64,
    save_to: Option<&Path>,
    resume: Option<&Path>,
) -> Result<String> {
    let mut chain = match resume {
        Some(path) => Chain::read(path)?,
        None => Chain::new(),
    };
    if chain.done > rounds {
        bail!("the state has {} rounds, more than {rounds}", chain.done);
    }
    let wanted = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&wanted);
    let mut signals = signal(SignalKind::user_defined1())?;
    let asking = async move {
        while signals.recv().await.is_some() {
            asked.store(true, Ordering::Relaxed);
        }
    };
    let save_to = save_to.map(Path::to_path_buf);
    let work = tokio::task::spawn_blocking(move || {
        while chain.done < rounds {
            chain.go_on(rounds.min(chain.done + BATCH));
            if wanted.swap(false, Ordering::Relaxed)
                && let Some(path) = &save_to
            {
                chain.write(path)?;
            }
        }
        Ok(format!("sha256^{rounds} {}", chain.hex()))
    });
    tokio::select! {
        () = asking => bail!("signals cannot be heard any more"),
        done = work => done?,
    }
}

/// How many rounds this machine computes in a second, roughly.
pub(crate) fn rate() -> u64 {
    let mut chain = Chain::new();
    let began = clock::instant();
    while began.elapsed() < MEASURED {
        let more = chain.done + BATCH;
        chain.go_on(more);
    }
    (chain.done as f64 / began.elapsed().as_secs_f64()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_saved_in_the_middle_leads_to_the_same_end() {
        let dir = std::env::temp_dir().join(format!("ebbtide-chain-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("state");
        let mut half = Chain::new();
        half.go_on(500);
        half.write(&path).unwrap();
        assert_eq!(Chain::read(&path).unwrap(), half);
        let whole = run(1_200, None, None).await.unwrap();
        assert_eq!(run(1_200, None, Some(&path)).await.unwrap(), whole);
        assert!(run(400, None, Some(&path)).await.is_err());
        fs::write(&path, "500 zz").unwrap();
        assert!(run(1_200, None, Some(&path)).await.is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
