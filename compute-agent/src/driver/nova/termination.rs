//! Ends a server: looks, chooses the next step, sends a request, and repeats that until Nova shows
//! the goal.
//!
//! There is no time limit here. The agent has one for every call and drops the call then; the next
//! call starts from the current state.

use super::NovaDriver;
use super::cloud::failed;
use super::judge::{EndGoal, Move, NovaRequest, judge};
use crate::driver::DriverError;
use ebbtide_model::ServerId;
use ebbtide_model::message::EvacuationEnd;
use ebbtide_openstack::compute::{AcceptedAction, Server};
use ebbtide_openstack::{Compute, OpenStackError, RequestEffect};

/// The longest pause between two looks at a server that is being ended, in settings of
/// `poll_seconds`.
const POLLS_GROW_TO: u32 = 8;

impl NovaDriver {
    /// Works until the goal is reached. Returns the server as it is then; `None` if it is gone.
    pub(super) async fn reach(
        &self,
        server_id: ServerId,
        goal: EndGoal,
        how: EvacuationEnd,
    ) -> Result<Option<Server>, DriverError> {
        let what = words(goal);
        let request_id = ebbtide_openstack::new_request_id();
        let compute = self.cloud.compute().for_request(&request_id);
        let mut asked = 0;
        let mut pause = self.cloud.settings().poll();
        let longest = pause * POLLS_GROW_TO;
        // Nova may have received a request whose answer was lost.
        let mut heard = false;
        let mut refusal = String::new();
        let _counted = self.cloud.ending();
        loop {
            let server = match compute.server(server_id.0).await {
                Ok(server) => server,
                Err(OpenStackError::NotFound { .. }) if goal == EndGoal::Gone && heard => {
                    return Ok(None);
                }
                Err(OpenStackError::NotFound { .. }) => {
                    return Err(DriverError::NotFound { server_id });
                }
                Err(error) if error.is_passing() => {
                    tracing::warn!(%server_id, code = error.code(), "waiting for Nova's API: {error}");
                    tokio::time::sleep(pause).await;
                    continue;
                }
                Err(error) => return Err(failed(what, &error)),
            };
            match judge(goal, &server, &self.host) {
                Move::Done => return Ok(Some(server)),
                Move::NotHere => return Err(DriverError::NotFound { server_id }),
                Move::Impossible(detail) => return Err(refused(goal, detail)),
                Move::Wait => {}
                Move::Ask(request) => {
                    if asked >= request.tries() {
                        let words = self.why(&compute, server_id, refusal).await;
                        return Err(refused(goal, words));
                    }
                    if asked == 0 {
                        self.usage
                            .ending(&server, &self.host, how, self.clock.now())
                            .await?;
                    }
                    if request == NovaRequest::Shelve {
                        // Nova accepts no metadata for a shelved server.
                        self.mark(&server, "shelved").await?;
                    }
                    match send_request(&compute, server_id, request).await {
                        Ok(accepted) => {
                            (asked, heard) = (asked + 1, true);
                            tracing::info!(
                                %server_id, ?request, request_id, nova_request_id = accepted.request_id,
                                "Nova has been asked"
                            );
                        }
                        // The next look shows whether it was done.
                        Err(OpenStackError::NotFound { .. }) => {}
                        Err(error) if error.is_passing() => {
                            heard |= error.effect() == RequestEffect::Unknown;
                            tracing::warn!(%server_id, code = error.code(), "waiting for Nova's API: {error}");
                        }
                        Err(
                            error @ (OpenStackError::Conflict { .. }
                            | OpenStackError::Refused { .. }),
                        ) => {
                            asked += 1;
                            refusal = error.to_string();
                        }
                        Err(error) => return Err(failed(what, &error)),
                    }
                }
            }
            self.cloud.wait_for_next_look(server_id, pause).await;
            // The pause grows: hundreds of waiting calls would keep Nova's API from working.
            pause = (pause * 3 / 2).min(longest);
        }
    }

    /// Why Nova has not reached the goal: its refusal, or the text of its last instance action.
    async fn why(&self, compute: &Compute, server_id: ServerId, refusal: String) -> String {
        if !refusal.is_empty() {
            return refusal;
        }
        let actions = compute
            .instance_actions(server_id.0)
            .await
            .unwrap_or_default();
        let last = actions.first();
        let said = last.map(|a| {
            format!(
                "Nova's {} ended with {:?}",
                a.action,
                a.message.as_deref().unwrap_or("nothing")
            )
        });
        said.unwrap_or_else(|| "Nova took the request and did not follow it".to_owned())
    }
}

async fn send_request(
    compute: &Compute,
    server_id: ServerId,
    request: NovaRequest,
) -> Result<AcceptedAction, OpenStackError> {
    match request {
        NovaRequest::Delete => compute.delete(server_id.0).await,
        NovaRequest::ForceDelete => compute.force_delete(server_id.0).await,
        NovaRequest::Stop => compute.stop(server_id.0).await,
        NovaRequest::Shelve => compute.shelve(server_id.0).await,
        NovaRequest::Offload => compute.shelve_offload(server_id.0).await,
        NovaRequest::LiveMigrate => compute.live_migrate(server_id.0, None).await,
    }
}

/// The error for a refusal. Nova would refuse a migration again; other requests may succeed the
/// next time.
fn refused(goal: EndGoal, detail: String) -> DriverError {
    match goal {
        EndGoal::Elsewhere => DriverError::NoRoom { detail },
        _ => DriverError::Failed {
            what: words(goal),
            detail,
        },
    }
}

fn words(goal: EndGoal) -> &'static str {
    match goal {
        EndGoal::Gone => "delete the server",
        EndGoal::Stopped => "stop the server",
        EndGoal::Shelved => "shelve the server",
        EndGoal::Elsewhere => "move the server to another host",
    }
}
