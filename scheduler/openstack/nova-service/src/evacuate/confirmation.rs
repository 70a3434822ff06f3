//! The confirmation that the victims of a preemption are needed. Placement is asked for it while
//! the ledger and Placement take the swap, so that no request waits for it alone. No victim hears
//! of the preemption before.

use ebbtide_runtime::task::{self, Task};
use tokio::sync::oneshot;

/// A question that is on its way. Dropping it gives the question up.
pub(crate) struct Confirmation {
    answer: oneshot::Receiver<Result<(), String>>,
    _asking: Task,
}

impl Confirmation {
    /// Asks in the background. The error says why the victims are not needed, or not known to be.
    pub(crate) fn of(question: impl Future<Output = Result<(), String>> + Send + 'static) -> Self {
        let (tell, answer) = oneshot::channel();
        let asking = task::spawn("confirmation", async move {
            let _ = tell.send(question.await);
        });
        Self {
            answer,
            _asking: asking,
        }
    }

    /// Waits for the answer.
    pub(super) async fn wait(self) -> Result<(), String> {
        let answer = self.answer.await;
        answer.unwrap_or_else(|_| Err("the question was given up".to_owned()))
    }
}
