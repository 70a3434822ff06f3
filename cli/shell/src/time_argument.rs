//! Times on the command line: a day, or a time of day.

use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, UtcOffset};

/// Reads `2026-05-04` (its beginning in UTC) or `2026-05-04T10:00:00Z`.
///
/// # Errors
/// What it should look like.
pub fn parse_time(text: &str) -> Result<OffsetDateTime, String> {
    if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(at);
    }
    Date::parse(text, &Iso8601::DATE)
        .map(|day| day.midnight().assume_offset(UtcOffset::UTC))
        .map_err(|_| "it looks like 2026-05-04 or 2026-05-04T10:00:00Z".to_owned())
}

/// As the API wants it.
#[must_use]
pub fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}
