//! What a filter is.

use crate::fault::NovaException;
use crate::model::{HostState, Options, RequestSpec};

/// What every filter may know besides host and request.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Options, read and checked.
    pub options: &'a Options,
    /// Microseconds since 1970, UTC.
    pub now: i64,
}

/// One filter. It judges one host; some narrow the host's allocation candidates and set limits.
pub trait Filter: Sync {
    /// Nova's class name.
    fn name(&self) -> &'static str;

    /// True if it runs for the first instance of a request only (`run_filter_once_per_request`).
    fn once_per_request(&self) -> bool {
        false
    }

    /// True if it runs for a rebuild (`RUN_ON_REBUILD`).
    fn on_rebuild(&self) -> bool {
        false
    }

    /// Whether it can start at all with these options.
    ///
    /// # Errors
    /// What its constructor raises.
    fn starts(&self, _options: &Options) -> Result<(), NovaException> {
        Ok(())
    }

    /// Whether the host passes. Called for a rebuild only if [`Self::on_rebuild`], and not if
    /// [`Self::narrows`].
    ///
    /// # Errors
    /// What Nova raises there.
    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException>;

    /// True if it changes hosts for this request: their allocation candidates, their limits. Then
    /// [`Self::narrow`] is called.
    fn narrows(&self, _spec: &RequestSpec) -> bool {
        false
    }

    /// Whether the host passes, and with what.
    ///
    /// # Errors
    /// What Nova raises there.
    fn narrow(
        &self,
        host: &mut HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        self.passes(host, spec, context)
    }
}
