//! From names to identifiers: wherever an id is accepted, a name is too.

use crate::Context;
use crate::errors::CliError;
use ebbtide_client::Region;
use ebbtide_proto::v1;
use std::collections::BTreeMap;
use uuid::Uuid;

/// How to see which servers there are.
pub const SERVER_HINT: &str =
    "`ebbtide server list` shows what there is; --project or --all-projects for others";
/// How to see which server groups there are.
pub const GROUP_HINT: &str = "`ebbtide server group list` shows what there is";
/// How to see which flavors there are.
pub const FLAVOR_HINT: &str = "`ebbtide flavor list` shows what there is";
/// How to see which hosts there are.
pub const HOST_HINT: &str = "`ebbtide host list` shows what there is";

/// True for a UUID: then nothing has to be looked up.
#[must_use]
pub fn is_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok()
}

/// The server with this id, or with this name in the project. One that is gone is found only if
/// none that is there has the name, and only if `also_gone`; then it is the newest.
///
/// # Errors
/// [`CliError::NotFound`], [`CliError::Ambiguous`], or what the region says.
pub async fn server(
    region: &mut Region,
    context: &Context,
    text: &str,
    also_gone: bool,
) -> Result<v1::Server, CliError> {
    if is_id(text) {
        let request = v1::GetServerRequest {
            id: text.to_owned(),
        };
        let answer = region.servers.get_server(request).await;
        let answer = answer.map_err(|status| CliError::from(status).hint(SERVER_HINT))?;
        return answer
            .into_inner()
            .server
            .ok_or_else(|| not_found(context, text));
    }
    let present = named(region, context, text, false).await?;
    match present.as_slice() {
        [one] => return Ok(one.clone()),
        [] if also_gone => {}
        [] => return Err(not_found(context, text)),
        several => {
            return Err(CliError::Ambiguous {
                what: "server",
                name: text.to_owned(),
                count: several.len(),
                ids: several
                    .iter()
                    .map(|s| s.id.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
    }
    let mut gone = named(region, context, text, true).await?;
    gone.sort_by(|a, b| a.created_at.cmp(&b.created_at));
    gone.pop().ok_or_else(|| not_found(context, text))
}

/// The id of a server, by id or name.
///
/// # Errors
/// As [`server`].
pub async fn server_id(
    region: &mut Region,
    context: &Context,
    text: &str,
) -> Result<String, CliError> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    Ok(server(region, context, text, false).await?.id)
}

async fn named(
    region: &mut Region,
    context: &Context,
    name: &str,
    include_gone: bool,
) -> Result<Vec<v1::Server>, CliError> {
    let request = v1::ListServersRequest {
        project_id: context.project.clone(),
        name: name.to_owned(),
        include_gone,
        ..Default::default()
    };
    let mut servers = region
        .servers
        .list_servers(request)
        .await?
        .into_inner()
        .servers;
    servers.retain(|server| server.name == name);
    Ok(servers)
}

fn not_found(context: &Context, name: &str) -> CliError {
    CliError::NotFound {
        what: "server",
        name: name.to_owned(),
        place: format!(" in project {:?}", context.project),
        next: SERVER_HINT,
    }
}

/// The id of a server group, by id or name, in the project.
///
/// # Errors
/// [`CliError::NotFound`], [`CliError::Ambiguous`], or what the region says.
pub async fn group_id(
    region: &mut Region,
    context: &Context,
    text: &str,
) -> Result<String, CliError> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    let request = v1::ListServerGroupsRequest {
        project_id: context.project.clone(),
    };
    let groups = region
        .servers
        .list_server_groups(request)
        .await?
        .into_inner()
        .groups;
    let ids: Vec<String> = groups
        .into_iter()
        .filter(|group| group.name == text)
        .map(|group| group.id)
        .collect();
    match ids.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(CliError::NotFound {
            what: "server group",
            name: text.to_owned(),
            place: format!(" in project {:?}", context.project),
            next: GROUP_HINT,
        }),
        several => Err(CliError::Ambiguous {
            what: "server group",
            name: text.to_owned(),
            count: several.len(),
            ids: several.join(", "),
        }),
    }
}

/// Splits `key=value`.
///
/// # Errors
/// In words, for clap.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("use KEY=VALUE".to_owned()),
    }
}

/// Settings of a plugin, each `KEY=VALUE`.
///
/// # Errors
/// [`CliError::Usage`].
pub fn settings(given: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let pair = |setting: &String| {
        let pair = setting.split_once('=');
        let (key, value) =
            pair.ok_or_else(|| CliError::Usage(format!("--set {setting}: write KEY=VALUE")))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    given.iter().map(pair).collect()
}
