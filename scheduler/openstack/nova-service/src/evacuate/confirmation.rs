//! The confirmation that the victims of a preemption are needed. Placement is asked for it while
//! the ledger and Placement take the swap, so that no request waits for it alone. No victim hears
//! of the preemption before.

use ebbtide_runtime::task::{self, AbortOnDropHandle};

/// A question that is on its way. Dropping it gives the question up.
pub(crate) struct Confirmation(AbortOnDropHandle<Result<(), String>>);

impl Confirmation {
    /// Asks in the background. The error says why the victims are not needed, or not known to be.
    pub(crate) fn of(question: impl Future<Output = Result<(), String>> + Send + 'static) -> Self {
        Self(task::spawn_for_result("confirmation", question))
    }

    /// Waits for the answer.
    pub(super) async fn wait(self) -> Result<(), String> {
        self.0.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}
