//! `ebbtide budget`: the most victims of a project or server group within a time window.

use clap::{Args, Subcommand};
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Listing, TableCell, number, text};
use ebbtide_shell::render::{optional, span};
use ebbtide_shell::resolve;

const SET: &str = "\
A budget is a constraint, not a wish: a victim set that would break it is not considered.

Examples:
  ebbtide budget set --of-project research --max-victims 3 --window 3600
  ebbtide budget set --group web --max-victims 1 --window 600";
const LIST: &str = "Examples:\n  ebbtide budget list";
const DELETE: &str = "Examples:\n  ebbtide budget delete --of-project research";

/// What can be done with disruption budgets.
#[derive(Debug, Subcommand)]
pub enum BudgetCommand {
    /// Create or replace the budget of a project or server group
    #[command(after_help = SET)]
    Set {
        /// Whose
        #[command(flatten)]
        owner: BudgetOwner,
        /// Most victims within the window
        #[arg(long, value_name = "N")]
        max_victims: u32,
        /// Length of the window, in seconds
        #[arg(long, value_name = "SECONDS")]
        window: u32,
    },
    /// All budgets
    #[command(after_help = LIST)]
    List,
    /// Remove a budget
    #[command(after_help = DELETE)]
    Delete {
        /// Whose
        #[command(flatten)]
        owner: BudgetOwner,
    },
}

/// Whose budget.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct BudgetOwner {
    /// Of all servers of this project
    #[arg(long, value_name = "PROJECT")]
    pub of_project: Option<String>,
    /// Of the servers of this server group, by name or id
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
}

/// Does it.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, command: BudgetCommand) -> Result<(), CliError> {
    let mut region = context.region().await?;
    match command {
        BudgetCommand::Set {
            owner,
            max_victims,
            window,
        } => {
            let group_id = match &owner.group {
                Some(group) => resolve::group_id(&mut region, context, group).await?,
                None => String::new(),
            };
            let budget = v1::DisruptionBudget {
                project_id: owner.of_project.unwrap_or_default(),
                group_id,
                max_victims,
                window_seconds: window,
            };
            let request = v1::PutBudgetRequest {
                budget: Some(budget),
            };
            let answer = region.admin.put_budget(request).await?;
            show(context, &answer.into_inner().budget.unwrap_or_default())
        }
        BudgetCommand::List => {
            let answer = region.admin.list_budgets(v1::ListBudgetsRequest {}).await?;
            list(context, &answer.into_inner().budgets)
        }
        BudgetCommand::Delete { owner } => {
            let group_id = match &owner.group {
                Some(group) => resolve::group_id(&mut region, context, group).await?,
                None => String::new(),
            };
            let request = v1::DeleteBudgetRequest {
                project_id: owner.of_project.unwrap_or_default(),
                group_id,
            };
            let answer = region.admin.delete_budget(request).await;
            answer.map_err(|status| {
                CliError::from(status).hint("`ebbtide budget list` shows what there is")
            })?;
            context.output.say("deleted the budget");
            Ok(())
        }
    }
}

fn window(budget: &v1::DisruptionBudget) -> TableCell {
    TableCell::new(span(u64::from(budget.window_seconds))).value(budget.window_seconds)
}

fn show(context: &mut Context, budget: &v1::DisruptionBudget) -> Result<(), CliError> {
    context.output.details(Details {
        fields: vec![
            ("project_id", optional(&budget.project_id)),
            ("group_id", optional(&budget.group_id)),
            ("max_victims", TableCell::new(budget.max_victims)),
            ("window_seconds", window(budget)),
        ],
        json: json::message(budget),
    })
}

fn list(context: &mut Context, budgets: &[v1::DisruptionBudget]) -> Result<(), CliError> {
    let row = |budget: &v1::DisruptionBudget| {
        vec![
            optional(&budget.project_id),
            optional(&budget.group_id),
            TableCell::new(budget.max_victims),
            window(budget),
        ]
    };
    let listing = Listing {
        columns: vec![
            text("project_id", "Project"),
            text("group_id", "Server group"),
            number("max_victims", "Most victims"),
            text("window_seconds", "Within"),
        ],
        rows: budgets.iter().map(row).collect(),
        json: json::list(budgets),
        none: "no budgets: any number of preemptible servers may be evacuated",
    };
    context.output.listing(listing)
}
