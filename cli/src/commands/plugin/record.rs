//! `ebbtide plugin record`: the region as a file, to try plugins on.

use super::RecordArgs;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::fs::File;
use std::io::Write;

pub(super) async fn run(context: &mut Context, args: &RecordArgs) -> Result<(), CliError> {
    let refused = |error: std::io::Error| CliError::Refused {
        problem: format!("{}: {error}", args.file.display()),
        next: "name a place that can be written to".to_owned(),
    };
    let mut region = context.region().await?;
    let asked = region.plugins.record_region(v1::RecordRegionRequest {});
    let mut pieces = asked.await?.into_inner();
    // Written beside it first: half a record would be taken for one.
    let beside = args.file.with_extension("part");
    let mut file = File::create(&beside).map_err(refused)?;
    let mut bytes = 0;
    while let Some(piece) = pieces.message().await? {
        file.write_all(&piece.piece).map_err(refused)?;
        bytes += piece.piece.len();
    }
    file.sync_all().map_err(refused)?;
    std::fs::rename(&beside, &args.file).map_err(refused)?;
    context.output.say(&format!(
        "{}: {bytes} bytes. It names every tenant's servers: treat it as you treat the database.",
        args.file.display()
    ));
    Ok(())
}
