//! A request group and the query that groups make (`RequestGroup`,
//! `ResourceRequest.to_querystring`).

use super::query_parts::QueryGroup;
use crate::python::number;
use ebbtide_model::resource::STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Resources, traits and aggregates that go together.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// Suffix of the group's parameters; `None` and empty text have none.
    pub(super) suffix: Option<String>,
    pub(super) resources: BTreeMap<String, i128>,
    pub(super) required: BTreeSet<String>,
    pub(super) forbidden: BTreeSet<String>,
    /// Each a choice, all to be met.
    pub(super) aggregates: Vec<Vec<String>>,
    pub(super) forbidden_aggregates: BTreeSet<String>,
    pub(super) in_tree: Option<String>,
}

impl Group {
    /// Sets an amount. Unknown classes and amounts that are no whole number or negative are
    /// dropped, as Nova does with a warning.
    pub(super) fn add_resource(&mut self, class: &str, amount: i128) {
        let known = class.starts_with("CUSTOM_") || STANDARD.contains(&class);
        if known && amount >= 0 {
            self.resources.insert(class.to_owned(), amount);
        }
    }

    /// Sets an amount that an extra spec tells.
    pub(super) fn add_resource_text(&mut self, class: &str, amount: &str) {
        if let Some(amount) = number::int(amount) {
            self.add_resource(class, amount);
        }
    }

    /// Adds a trait that is `required` or `forbidden`; other words are dropped.
    pub(super) fn add_trait(&mut self, name: &str, kind: &str) {
        match kind {
            "required" => drop(self.required.insert(name.to_owned())),
            "forbidden" => drop(self.forbidden.insert(name.to_owned())),
            _ => {}
        }
    }

    pub(super) fn strip_zeros(&mut self) {
        self.resources.retain(|_, amount| *amount != 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
            && self.required.is_empty()
            && self.forbidden.is_empty()
            && self.aggregates.is_empty()
            && self.forbidden_aggregates.is_empty()
    }

    /// The group as others see it.
    pub(super) fn asked(&self) -> QueryGroup {
        QueryGroup {
            suffix: self.suffix.clone().filter(|suffix| !suffix.is_empty()),
            resources: self.resources.clone(),
            required: self.required.clone(),
            forbidden: self.forbidden.clone(),
            member_of: self.aggregates.clone(),
            forbidden_aggregates: self.forbidden_aggregates.clone(),
            in_tree: self.in_tree.clone().filter(|in_tree| !in_tree.is_empty()),
        }
    }

    /// The parameters of the query.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let suffix = self.suffix.as_deref().unwrap_or_default();
        let mut resources: Vec<String> = self
            .resources
            .iter()
            .map(|(class, amount)| format!("{class}:{amount}"))
            .collect();
        resources.sort();
        let mut parameters = vec![(format!("resources{suffix}"), resources.join(","))];
        let traits = with_forbidden(&self.required, &self.forbidden);
        if !traits.is_empty() {
            parameters.push((format!("required{suffix}"), traits));
        }
        for choice in &self.aggregates {
            let mut choice = choice.clone();
            choice.sort();
            parameters.push((
                format!("member_of{suffix}"),
                format!("in:{}", choice.join(",")),
            ));
        }
        if let Some(in_tree) = self.in_tree.as_ref().filter(|in_tree| !in_tree.is_empty()) {
            parameters.push((format!("in_tree{suffix}"), in_tree.clone()));
        }
        if !self.forbidden_aggregates.is_empty() {
            let forbidden: Vec<&str> = self
                .forbidden_aggregates
                .iter()
                .map(String::as_str)
                .collect();
            parameters.push((
                format!("member_of{suffix}"),
                format!("!in:{}", forbidden.join(",")),
            ));
        }
        parameters
    }
}

/// `A,B,!C`.
pub(super) fn with_forbidden(required: &BTreeSet<String>, forbidden: &BTreeSet<String>) -> String {
    let required = required.iter().cloned();
    let forbidden = forbidden.iter().map(|name| format!("!{name}"));
    required.chain(forbidden).collect::<Vec<_>>().join(",")
}

/// A query string: parameters sorted, encoded as `urllib.parse.urlencode` does.
pub(super) fn encode(mut parameters: Vec<(String, String)>) -> String {
    parameters.sort();
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", quote(name), quote(value)))
        .collect();
    pairs.join("&")
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(char::from(byte))
            }
            b' ' => out.push('+'),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_sorted_and_quoted() {
        let parameters = [("b", "x y~é"), ("a", "1,2:3"), ("b", "!c")];
        let parameters = parameters
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        assert_eq!(encode(parameters), "a=1%2C2%3A3&b=%21c&b=x+y~%C3%A9");
    }

    #[test]
    fn unknown_classes_and_bad_amounts_are_dropped() {
        let mut group = Group::default();
        group.add_resource_text("VGPU", " 2 ");
        group.add_resource_text("CUSTOM_X", "-1");
        group.add_resource_text("CUSTOM_Y", "1.5");
        group.add_resource_text("XGPU", "1");
        assert_eq!(
            group.parameters(),
            [("resources".to_owned(), "VGPU:2".to_owned())]
        );
    }
}
