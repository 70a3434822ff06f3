//! Submits attempts to Slurm.

use ebbtide_batch::script::{ScriptOptions, directories, output_path, script};
use ebbtide_batch::{BatchAction, BatchController, BatchSettings, job_name};
use ebbtide_batch_service::storage;
use ebbtide_burst::BurstError;
use ebbtide_slurm::Slurm;
use std::path::Path;

/// What a job's environment has beside Slurm's own variables. The service's own environment is none
/// of a tenant's business.
const EXPORT: &str = "--export=PATH,HOME,LANG,USER";

/// Carries an action on a job out.
///
/// # Errors
/// [`BurstError::Silent`] if Slurm refuses, [`BurstError::Storage`].
pub(crate) async fn act(
    settings: &BatchSettings,
    slurm: &Slurm,
    controller: &BatchController,
    action: &BatchAction,
) -> Result<(), BurstError> {
    match action {
        BatchAction::Start { .. } => start(settings, slurm, controller, action).await,
        BatchAction::Save { job } => {
            let job = job.to_string();
            let words = ["--batch", "--signal=TERM", &job];
            slurm.run("scancel", &words).await.map(drop)
        }
        BatchAction::Checkpoint { job } => {
            let job = job.to_string();
            let words = ["--batch", "--signal=USR1", &job];
            slurm.run("scancel", &words).await.map(drop)
        }
        BatchAction::Stop { job } => slurm.run("scancel", &[&job.to_string()]).await.map(drop),
    }
}

/// Submits an attempt at a member to its node.
async fn start(
    settings: &BatchSettings,
    slurm: &Slurm,
    controller: &BatchController,
    action: &BatchAction,
) -> Result<(), BurstError> {
    let BatchAction::Start {
        work: id,
        member,
        attempt,
        node,
        age,
        length,
    } = action
    else {
        return Ok(());
    };
    let (Some(book), Some(ty)) = (controller.book().works.get(id), controller.type_of(node)) else {
        return Ok(());
    };
    let options = ScriptOptions {
        attempt: *attempt,
        server_type: ty,
        age: *age,
        length: *length,
        ebbtide: &settings.slurm.ebbtide,
    };
    let (work, member, attempt) = (&book.work, *member, *attempt);
    let (stage, memory_mb) = (work.stage(member), book.memory_mb(member));
    for dir in directories(work) {
        let dir = Path::new(&dir);
        std::fs::create_dir_all(dir).map_err(storage("make", dir))?;
    }
    let name = job_name(*id, member, attempt);
    let scripts = settings.state_dir.join("scripts");
    std::fs::create_dir_all(&scripts).map_err(storage("make", &scripts))?;
    let path = scripts.join(format!("{id}.sh"));
    let text = script(work, member, options);
    std::fs::write(&path, text).map_err(storage("write", &path))?;
    let mut words = vec![
        "--parsable".to_owned(),
        "--no-requeue".to_owned(),
        EXPORT.to_owned(),
        "--open-mode=append".to_owned(),
        "--ntasks=1".to_owned(),
        format!("--job-name={name}"),
        format!("--nodelist={node}"),
        format!("--cpus-per-task={}", stage.cpus),
        format!("--chdir={}", work.dir.display()),
        format!("--output={}", output_path(work, member, attempt)),
    ];
    if memory_mb > 0 {
        words.push(format!("--mem={memory_mb}M"));
    }
    if let Some(partition) = &settings.slurm.partition {
        words.push(format!("--partition={partition}"));
    }
    // sbatch takes a copy of the script.
    words.push(path.display().to_string());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    slurm.run("sbatch", &words).await.map(drop)
}
