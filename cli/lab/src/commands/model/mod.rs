//! `ebbtide-lab model`: how long preemptible instances live, from what was seen. A region is needed
//! only where they are to be its own.

mod check;
mod check_chart;
mod fit;
mod fit_chart;
mod fitted;
mod from_region;
mod source;

use clap::Subcommand;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

/// What to do with models of lifetimes.
#[derive(Debug, Clone, Subcommand)]
pub enum ModelCommand {
    /// Fit lifetime models to what was seen, and say which one to use
    #[command(after_help = fit::HELP)]
    Fit(fit::FitArgs),
    /// Say whether new lifetimes still fit a model
    #[command(after_help = check::HELP)]
    Check(check::CheckArgs),
}

impl ModelCommand {
    /// True if the lifetimes come from a region.
    #[must_use]
    pub fn uses_region(&self) -> bool {
        match self {
            Self::Fit(args) => args.source.from_region,
            Self::Check(args) => args.source.from_region,
        }
    }
}

/// Fits, or checks.
///
/// # Errors
/// [`CliError::Lifetime`] for data or models that cannot be used; [`CliError::Disagrees`] if new
/// lifetimes do not fit any more.
pub async fn run(context: &mut Context, command: ModelCommand) -> Result<(), CliError> {
    match command {
        ModelCommand::Fit(args) => fit::run(context, &args).await,
        ModelCommand::Check(args) => check::run(context, &args).await,
    }
}
