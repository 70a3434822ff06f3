//! The confirmation that the victims of a preemption are needed. Placement is asked for it while
//! the ledger and Placement take the swap, so that no request waits for it alone. No victim hears
//! of the preemption before.

use ebbtide_runtime::task::{self, AbortOnDropHandle};
use tokio::sync::oneshot;

/// A question that is on its way. Dropping it gives the question up.
pub(crate) struct Confirmation {
    answer: AbortOnDropHandle<Result<(), String>>,
    /// Begins the part of the question that is sent behind the swap.
    with_swap: Option<oneshot::Sender<()>>,
}

impl Confirmation {
    /// Asks in the background. The error says why the victims are not needed, or not known to be.
    pub(crate) fn of(question: impl Future<Output = Result<(), String>> + Send + 'static) -> Self {
        Self {
            answer: task::spawn_for_result("confirmation", question),
            with_swap: None,
        }
    }

    /// A part of the question waits until the swap is sent: Placement works on the swap first, for
    /// which the caller waits, if it has few workers.
    pub(crate) fn beginning_with_swap(self, begin: Option<oneshot::Sender<()>>) -> Self {
        Self {
            with_swap: begin,
            ..self
        }
    }

    /// The swap is on its way.
    pub(super) fn swap_is_sent(&mut self) {
        if let Some(begin) = self.with_swap.take() {
            // A question that has ended needs no part of it any more.
            let _ = begin.send(());
        }
    }

    /// Waits for the answer.
    pub(super) async fn wait(mut self) -> Result<(), String> {
        self.swap_is_sent();
        self.answer
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
    }
}
