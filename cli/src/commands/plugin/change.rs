//! `ebbtide plugin add`, `remove`, `enable`, `disable` and `set-multiplier`: for all schedulers of
//! the region, at once.

use super::{AddArgs, MultiplierArgs, NameArgs, UseArgs, settings};
use ebbtide_files::read_regular;
use ebbtide_plugin_contract::LARGEST_COMPONENT;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

/// Largest component that is sent, in bytes: with all around it, it has to fit into one message.
const LARGEST: usize = 12 * 1024 * 1024;

pub(super) async fn add(context: &mut Context, args: AddArgs) -> Result<(), CliError> {
    let component = match &args.file {
        Some(file) => read_regular(file, LARGEST_COMPONENT).map_err(|error| CliError::Refused {
            problem: format!("{}: {error}", file.display()),
            next: "name a component that can be read, or --at PATH for one on the schedulers' own disks".to_owned(),
        })?,
        None => Vec::new(),
    };
    if component.len() > LARGEST {
        return Err(CliError::Refused {
            problem: format!(
                "the component has {} bytes; a region keeps up to {LARGEST}",
                component.len()
            ),
            next:
                "put it on the schedulers' own disks, at the same place on each, and say --at PATH"
                    .to_owned(),
        });
    }
    let request = v1::AddPluginRequest {
        name: args.name.clone(),
        component,
        file: args.at.unwrap_or_default(),
        address: args.address.unwrap_or_default(),
        plugin: args.plugin.unwrap_or_default(),
        settings: settings(&args.set)?.into_iter().collect(),
        multiplier: args.multiplier,
        on_failure: match args.on_failure {
            Some(super::OnFailure::Ignore) => "ignore".to_owned(),
            Some(super::OnFailure::Refuse) => "refuse".to_owned(),
            None => String::new(),
        },
        shadow: args.shadow,
        memory_mb: args.memory_mb.unwrap_or(0),
        work_million: args.work_million.unwrap_or(0),
        work_per_row: args.work_per_row.unwrap_or(0),
        deadline_ms: args.deadline_ms.unwrap_or(0),
        in_flight: args.in_flight.unwrap_or(0),
        grants: args.grant,
        replace: args.replace,
    };
    let mut region = context.region().await?;
    let added = region.plugins.add_plugin(request).await?.into_inner();
    let plugin = added.plugin.unwrap_or_default();
    let name = &args.name;
    let words = match args.shadow {
        true => format!(
            "{name} is in shadow: `ebbtide plugin shadow-report` shows what it would change."
        ),
        false if plugin.in_use => format!("{name} is in use."),
        // There is one cost module at a time.
        false => format!("{name} is there, and not used yet: `ebbtide plugin use {name}`."),
    };
    context.output.say(&words);
    Ok(())
}

pub(super) async fn use_cost_module(context: &mut Context, args: UseArgs) -> Result<(), CliError> {
    let request = v1::UseCostModuleRequest {
        name: args.name.unwrap_or_default(),
    };
    let mut region = context.region().await?;
    let used = region.plugins.use_cost_module(request).await?.into_inner();
    let words = format!("{} says what victims cost now.", used.name);
    context.output.say(&words);
    Ok(())
}

pub(super) async fn remove(context: &mut Context, args: NameArgs) -> Result<(), CliError> {
    let request = v1::RemovePluginRequest {
        name: args.name.clone(),
    };
    let mut region = context.region().await?;
    region.plugins.remove_plugin(request).await?;
    context.output.say(&format!("{} is gone.", args.name));
    Ok(())
}

async fn change(context: &mut Context, request: v1::ChangePluginRequest) -> Result<(), CliError> {
    let mut region = context.region().await?;
    region.plugins.change_plugin(request).await?;
    Ok(())
}

pub(super) async fn enable(
    context: &mut Context,
    args: NameArgs,
    shadow: bool,
) -> Result<(), CliError> {
    let request = v1::ChangePluginRequest {
        name: args.name.clone(),
        enabled: Some(true),
        shadow: Some(shadow),
        ..v1::ChangePluginRequest::default()
    };
    change(context, request).await?;
    let how = if shadow { "in shadow" } else { "enabled" };
    context.output.say(&format!("{} is {how}.", args.name));
    Ok(())
}

pub(super) async fn disable(context: &mut Context, args: NameArgs) -> Result<(), CliError> {
    let request = v1::ChangePluginRequest {
        name: args.name.clone(),
        enabled: Some(false),
        ..v1::ChangePluginRequest::default()
    };
    change(context, request).await?;
    context.output.say(&format!("{} is disabled.", args.name));
    Ok(())
}

pub(super) async fn set_multiplier(
    context: &mut Context,
    args: MultiplierArgs,
) -> Result<(), CliError> {
    let multiplier = match args.multiplier.as_str() {
        "default" => None,
        number => Some(number.parse::<f64>().map_err(|_| {
            CliError::Usage(format!("{number:?} is neither a number nor `default`"))
        })?),
    };
    let request = v1::ChangePluginRequest {
        name: args.name.clone(),
        multiplier,
        reset_multiplier: multiplier.is_none(),
        ..v1::ChangePluginRequest::default()
    };
    change(context, request).await?;
    let words = match multiplier {
        Some(multiplier) => format!("{} counts {multiplier} times now.", args.name),
        None => format!("{} counts as the configuration says.", args.name),
    };
    context.output.say(&words);
    Ok(())
}
