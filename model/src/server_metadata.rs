//! Keys of a server's metadata on an OpenStack: how the owner, and the guest, learn of an
//! evacuation, and how the owner answers.

/// What will happen: `terminate`, `stop`, `shelve` or `live-migrate`.
pub const NOTICE: &str = "ebbtide:notice";
/// Not before when, RFC 3339.
pub const NOTICE_DEADLINE: &str = "ebbtide:notice_deadline";
pub const NOTICE_EVACUATION: &str = "ebbtide:notice_evacuation";
pub const NOTICE_REASON: &str = "ebbtide:notice_reason";
/// Set by the tenant: `now`, or the evacuation, if no more time is needed.
pub const RELEASE: &str = "ebbtide:release";
/// What has happened: `stopped`, `shelved` or `migrated`.
pub const EVACUATED_HOW: &str = "ebbtide:evacuated_how";
/// When, RFC 3339.
pub const EVACUATED_AT: &str = "ebbtide:evacuated_at";
/// Set by the programs beside slurmctld: the node of a Slurm cluster that runs on the server.
pub const NODE: &str = "ebbtide:node";
/// Set by `ebbtide run`: the id under which the server was asked for. Nova gives ids itself, and
/// its answer may get lost.
pub const ORDER: &str = "ebbtide:order";
