//! The protocol of one victim, from the claim on its capacity to its end. Pure.
//!
//! The standalone region, OpenStack mode and the simulator use this crate; none of them decides a
//! transition, a limit or an attempt by itself. The states are those of
//! [`EvacuationState`](ebbtide_model::EvacuationState), which is also what records and the API
//! contain. The agent's journal uses the same names.
//!
//! ```text
//! Claimed ─▶ Notified ─▶ Draining ─▶ Evacuated
//!    │          │           │            ▲
//!    ├──────────┴───────────┴─▶ Spared ──┤  late: the agent had acted all the same
//!    └──────────┴───────────┴─▶ Failed ──┘
//! ```
//!
//! In each of the first three states the scheduler may ask the agent to let the victim live
//! ([`Progress::spare_requested`]). The state stays until the agent answers.
//!
//! - [`Progress::after`] is the only list of transitions.
//! - [`EvacuationPolicy`] has the settings, their ranges and the arithmetic of limits.
//! - [`overdue`] says what follows a limit that has passed.
//! - [`EndReason`] has the texts and codes of what ended an evacuation, [`cause_text`] those of why
//!   it began.
//! - [`Lifetimes`] says which servers get their notice because of their age.
//! - [`ResumeQueue`] says which of the servers that were kept comes back next.
//! - [`Disruption`] says which evacuations a disruption budget counts.
//!
//! # Where the two clouds differ
//!
//! In the standalone region a victim holds its capacity until it is gone. In OpenStack mode
//! Placement's swap gives it to the newcomer before the first notice. Therefore:
//!
//! - **A victim that does not leave** ([`AfterFailure`]). Region: its evacuation fails at once, the
//!   preemptor goes elsewhere, and a spare follows. OpenStack mode while the caller waits: its
//!   agent is asked to let it live, because the allocations go back and Placement must count the
//!   victim exactly once. After the answer to the caller: the evacuation fails and is repeated,
//!   because the newcomer has been placed.
//! - **A notice that came too late** ([`late_notice`]). Region: the next attempt is sent. OpenStack
//!   mode: a failure; the preemption is withdrawn and planned anew.
//! - **The rest after a failure.** Region ([`EvacuationPolicy::default`]): other victims are chosen
//!   meanwhile. OpenStack mode ([`EvacuationPolicy::openstack`]): shorter, because the victim runs
//!   in capacity that belongs to the newcomer.
//! - **`begin_before` of a repeated notice.** Region: computed anew for each attempt. OpenStack
//!   mode: that of the first attempt, from the record.
//! - **The publication of a spare** ([`Wait::unsent`]). Region: not tracked; the agent's answer or
//!   a heartbeat ends the wait. OpenStack mode: tracked; the limit begins when the broker has it.
//!
//! The swap and its return belong to a preemption and not to one victim: `ebbtide-preemption` has
//! them.

mod budgets;
mod comeback;
mod lifetime;
mod overdue;
mod policy;
mod progress;
mod reason;

pub use budgets::{Disruption, DisruptionStage, disrupted, remaining, scopes};
pub use comeback::{
    ClassCapacity, ComebackConfig, ReservedCapacity, ResumeEntry, ResumeQueue, ResumeState,
    failed_attempt, reserved_for, saved,
};
pub use lifetime::{Lifetimes, notice_at};
pub use overdue::{LateNotice, Overdue, Wait, late_notice, overdue};
pub use policy::EvacuationPolicy;
pub use progress::{AfterFailure, EvacuationEvent, Progress};
pub use reason::{EndReason, agent_text, cause_text};
