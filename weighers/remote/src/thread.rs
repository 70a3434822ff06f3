//! The thread on which services are asked. Decisions are made by threads of their own, which wait
//! for the answer; no matter how those are run, this one is never theirs.

use crate::RemoteError;
use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};

/// The thread, started when the first plugin needs it. It lives as long as the program: plugins
/// come and go.
pub(crate) fn handle() -> Result<&'static Handle, RemoteError> {
    static HANDLE: OnceLock<Result<Handle, String>> = OnceLock::new();
    let known = HANDLE.get_or_init(|| {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name("ebbtide-plugins".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))
            .map_err(|error| error.to_string())?;
        Ok(handle)
    });
    known
        .as_ref()
        .map_err(|problem| RemoteError::Thread(problem.clone()))
}

/// Runs something there and waits for it. `None` if it ended without an answer, which only a panic
/// does.
pub(crate) fn wait_for<T: Send + 'static>(
    handle: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    handle.spawn(async move {
        // The caller is waiting for the result. If it is gone, the result is dropped.
        let _ = sender.send(work.await);
    });
    // A runtime whose thread waits here goes on with its other work elsewhere, if it has another
    // thread.
    let is_many = Handle::try_current()
        .is_ok_and(|around| around.runtime_flavor() == RuntimeFlavor::MultiThread);
    match is_many {
        true => tokio::task::block_in_place(|| receiver.recv().ok()),
        false => receiver.recv().ok(),
    }
}
