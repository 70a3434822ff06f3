//! `enabled-and-up`: hosts that an operator disabled, or whose agent is silent, get no new
//! instances (Nova's ComputeFilter). The caller decides which agent is silent, because the engine
//! has no clock.

use super::{Filter, FilterEffect, HostCandidates};
use crate::state::DecisionState;
use crate::table::HostIndex;

pub(super) struct EnabledAndUp;

impl Filter for EnabledAndUp {
    fn name(&self) -> &'static str {
        "enabled-and-up"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        hosts.retain(|host| state.table.is_usable(host));
    }

    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        FilterEffect::Keeps(state.table.usable())
    }

    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String {
        format!("it is {}", state.table.health(host).as_str())
    }
}
