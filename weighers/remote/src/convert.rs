//! Requests and columns on their way.

use ebbtide_plugin_contract::{PluginColumn, properties};
use ebbtide_proto::plugin::v1::{Column, Groups, Numbers, Request, Texts, column::Kind};
use ebbtide_weigher_api::RequestView;

/// A column as a message.
pub(crate) fn column(handed: PluginColumn<'_>) -> Column {
    let kind = match handed {
        PluginColumn::Numbers(numbers) => Kind::Numbers(Numbers {
            numbers: numbers.to_vec(),
        }),
        PluginColumn::Texts { codes, texts } => Kind::Texts(Texts {
            codes: codes.to_vec(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        }),
        PluginColumn::Groups { offsets, numbers } => Kind::Groups(Groups {
            offsets: offsets.to_vec(),
            numbers: numbers.to_vec(),
        }),
    };
    Column { kind: Some(kind) }
}

/// How many rows.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// A request as a message.
pub(crate) fn request(request: &RequestView<'_>) -> Request {
    let resources = request.resources.iter();
    Request {
        project_id: request.project_id.to_owned(),
        preemptible: request.preemptible,
        resources: resources
            .map(|(class, amount)| (class.as_str().to_owned(), amount))
            .collect(),
        properties: properties(request)
            .into_iter()
            .map(|(key, value)| (key.into_owned(), value.to_owned()))
            .collect(),
    }
}
