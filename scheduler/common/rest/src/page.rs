//! Links to the next page of a list.

use crate::table::Page;
use prost_reflect::{DynamicMessage, Value};

/// The path and query of the next page, if there may be one: the page is as long as was asked for.
pub(crate) fn next(
    page: &Page,
    path: &str,
    query: &[(String, String)],
    answer: &DynamicMessage,
) -> Option<String> {
    let rows = answer.get_field_by_name(page.rows)?;
    let rows = rows.as_list()?;
    let asked = query.iter().find(|(name, _)| name == "limit");
    let asked = asked.and_then(|(_, text)| text.parse().ok()).unwrap_or(0);
    let full = match asked {
        0 => page.default_limit,
        asked => asked.min(Page::MOST),
    };
    if rows.len() < usize::try_from(full).unwrap_or(usize::MAX) {
        return None;
    }
    let Some(Value::Message(last)) = rows.last() else {
        return None;
    };
    let marker = last.get_field_by_name(page.marker)?;
    let mut link = form_urlencoded::Serializer::new(String::new());
    for (name, value) in query.iter().filter(|(name, _)| name != "marker") {
        link.append_pair(name, value);
    }
    link.append_pair("marker", marker.as_str()?);
    Some(format!("{path}?{}", link.finish()))
}
