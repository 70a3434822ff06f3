//! `ebbtide what-if`: a decision that changes nothing.

use crate::commands::server_create::RequestArgs;
use crate::decision_view;
use clap::Args;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::collections::HashMap;

const EXAMPLES: &str = "\
Says where servers would go now and who would have to leave. Nothing is claimed and no server is
notified; a moment later the answer may be another. No valid host: exit code 1.

On an OpenStack, say what you know of the image: the scheduler does not ask Glance.

Examples:
  ebbtide what-if --flavor m1.large
  ebbtide what-if --flavor m1.large --count 10 --availability-zone north -o json
  ebbtide what-if --flavor m1.large --image-property hw_machine_type=q35 --hint same_host=SERVER";

/// Options of `what-if`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhatIfArgs {
    /// What
    #[command(flatten)]
    pub request: RequestArgs,
    /// Id of the image (OpenStack)
    #[arg(long, value_name = "ID")]
    pub image: Option<String>,
    /// Disk format of the image, such as qcow2 (OpenStack)
    #[arg(long, value_name = "FORMAT")]
    pub image_disk_format: Option<String>,
    /// Property of the image; may be repeated (OpenStack)
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub image_property: Vec<(String, String)>,
    /// The servers boot from a volume (OpenStack)
    #[arg(long)]
    pub boot_from_volume: bool,
    /// Scheduler hint; may be repeated (OpenStack)
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub hint: Vec<(String, String)>,
}

/// `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("is not KEY=VALUE")?;
    match key.is_empty() {
        true => Err("has no key".to_owned()),
        false => Ok((key.to_owned(), value.to_owned())),
    }
}

impl WhatIfArgs {
    /// As the API wants it.
    fn question(self, project: &str) -> v1::WhatIfRequest {
        let known = self.image.is_some()
            || self.image_disk_format.is_some()
            || !self.image_property.is_empty();
        let image = known.then(|| v1::WhatIfImage {
            id: self.image.unwrap_or_default(),
            disk_format: self.image_disk_format.unwrap_or_default(),
            properties: self.image_property.into_iter().collect(),
        });
        let mut hints: HashMap<String, v1::HintValues> = HashMap::new();
        for (name, value) in self.hint {
            hints.entry(name).or_default().values.push(value);
        }
        v1::WhatIfRequest {
            request: Some(self.request.request(project)),
            image,
            boot_from_volume: self.boot_from_volume,
            scheduler_hints: hints,
        }
    }
}

/// Asks and shows.
///
/// # Errors
/// What the region says; [`CliError::NoValidHost`].
pub async fn run(context: &mut Context, args: WhatIfArgs) -> Result<(), CliError> {
    let request = args.question(&context.project);
    let answer = context.region().await?.scheduler.what_if(request).await?;
    let answer = answer.into_inner();
    let decision = answer.decision.unwrap_or_default();
    decision_view::print(context, &decision)?;
    for notice in &answer.notices {
        context.output.say(&format!("note: {notice}"));
    }
    context
        .output
        .say("This was a question: nothing was changed.");
    match decision.no_valid_host {
        // Nothing is kept of a question, so there is nothing to explain later.
        Some(nowhere) => Err(CliError::NoValidHost {
            reason: nowhere.reason,
            decision_id: String::new(),
        }),
        None => Ok(()),
    }
}
