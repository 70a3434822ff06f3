//! The batch script of an attempt.
//!
//! The script works in the member's directory, runs the command, and leaves a mark. A mark is a
//! link, which only one attempt can make: a member is done once, however many attempts there were.
//! On the signal to save (TERM, to the script alone) a member that can be saved saves its work and
//! the script ends with [`PUT_BACK`](crate::PUT_BACK). On USR1 it saves its work and goes on.

use crate::controller::PUT_BACK;
use crate::settings::ServerType;
use crate::work::{Checkpoint, MemberId, Work};
use std::fmt::Write as _;

/// What a script needs to know beside the work.
#[derive(Debug, Clone, Copy)]
pub struct ScriptOptions<'a> {
    /// Number of the attempt.
    pub attempt: u32,
    pub server_type: &'a ServerType,
    /// The age of the server, milliseconds.
    pub age: i64,
    /// How much work is expected to be left, milliseconds.
    pub length: i64,
    /// The program `ebbtide` on the nodes.
    pub ebbtide: &'a str,
}

/// Where a member's mark is, in the directory of the work.
#[must_use]
pub fn mark_path(work: &Work, member: MemberId) -> String {
    format!("{}/done/{}", work.dir.display(), work.member_name(member))
}

/// Where an attempt leaves its exit code.
#[must_use]
pub fn result_path(work: &Work, member: MemberId, attempt: u32) -> String {
    let name = work.member_name(member);
    format!("{}/attempts/{name}.{attempt}", work.dir.display())
}

/// The directory in which `ebbtide run` keeps the state of a member.
#[must_use]
pub fn state_path(work: &Work, member: MemberId) -> String {
    format!(
        "{}/work/{}/.run",
        work.dir.display(),
        work.member_name(member)
    )
}

/// Where the output of an attempt goes.
#[must_use]
pub fn output_path(work: &Work, member: MemberId, attempt: u32) -> String {
    let name = work.member_name(member);
    format!("{}/output/{name}.{attempt}", work.dir.display())
}

/// The directories that a work needs.
#[must_use]
pub fn directories(work: &Work) -> Vec<String> {
    let each = ["done", "attempts", "work", "output", "results"];
    each.map(|sub| format!("{}/{sub}", work.dir.display()))
        .to_vec()
}

/// What a script does when it is told to end. Before the command runs it only remembers that. The
/// service may repeat the signal; a second one would end `ebbtide run` before it has saved.
const SIGNALS: &str = r#"# TERM goes to the command once, which saves its work and ends.
child= told= passed=
pass_on() { [ -z "$told" ] || [ -z "$child" ] || [ -n "$passed" ] || { passed=1; kill -TERM "$child" 2>/dev/null; }; }
trap 'told=1; pass_on' TERM
"#;

/// The script of an attempt.
#[must_use]
pub fn script(work: &Work, member: MemberId, options: ScriptOptions<'_>) -> String {
    let stage = work.stage(member);
    let name = work.member_name(member);
    let dir = work.dir.display().to_string();
    let mut text = String::from("#!/bin/sh\n# Written by ebbtide-batch.\n");
    text.push_str(SIGNALS);
    if stage.checkpoint.is_some() {
        text.push_str("# USR1: to save and go on.\ntrap '[ -z \"$child\" ] || kill -USR1 \"$child\" 2>/dev/null' USR1\n");
    }
    let _ = writeln!(text, "dir={}", quoted(&dir));
    let _ = writeln!(text, "member={} attempt={}", quoted(&name), options.attempt);
    let variables = [
        ("EBBTIDE_WORK", work.name.clone()),
        ("EBBTIDE_STAGE", stage.name.clone()),
        ("EBBTIDE_MEMBER", member.index.to_string()),
        ("EBBTIDE_MEMBERS", stage.members.len().to_string()),
        ("EBBTIDE_ATTEMPT", options.attempt.to_string()),
        ("EBBTIDE_WORK_DIR", dir),
    ];
    for (key, value) in variables {
        let _ = writeln!(text, "export {key}={}", quoted(&value));
    }
    for (key, value) in &stage.members[member.index] {
        let _ = writeln!(text, "export {key}={}", quoted(value));
    }
    text.push_str(
        r#"result() { echo "$1" >"$dir/attempts/.$member.$attempt" && mv "$dir/attempts/.$member.$attempt" "$dir/attempts/$member.$attempt"; }
# Another attempt was faster.
[ ! -e "$dir/done/$member" ] || { result 0; exit 0; }
mkdir -p "$dir/work/$member" && cd "$dir/work/$member" || { result 73; exit 73; }
"#,
    );
    for input in &stage.inputs {
        let _ = writeln!(
            text,
            "cp -a -- {} . || {{ result 66; exit 66; }}",
            quoted(input)
        );
    }
    if stage.checkpoint.is_some() {
        // A signal at the moment of the fork could get lost in the child.
        let _ = writeln!(
            text,
            "[ -z \"$told\" ] || {{ result {PUT_BACK}; exit {PUT_BACK}; }}"
        );
    }
    let _ = writeln!(text, "{} &\nchild=$!", command(stage, options));
    let put_back = if stage.checkpoint.is_some() {
        // 130: `ebbtide run` has saved and stopped. 143: it was told before it had begun.
        format!(
            "case $code in 130 | 143) [ -z \"$told\" ] || {{ result {PUT_BACK}; exit {PUT_BACK}; }} ;; esac\n"
        )
    } else {
        // Ended from outside with its node: that is no failure of its own.
        "[ -z \"$told\" ] || exit \"$code\"\n".to_owned()
    };
    text.push_str(
        r#"while :; do
    wait "$child"; code=$?
    # A signal ends the wait, not the command.
    kill -0 "$child" 2>/dev/null && continue
    # Both may end at once: then the command's own code is still to be had.
    wait "$child" 2>/dev/null; again=$?
    [ "$again" -eq 127 ] || code=$again
    break
done
"#,
    );
    text.push_str(&put_back);
    text.push_str("[ \"$code\" -eq 0 ] || { result \"$code\"; exit \"$code\"; }\n");
    if !stage.outputs.is_empty() {
        text.push_str("mkdir -p \"$dir/results/$member\"\n");
    }
    for output in &stage.outputs {
        let _ = writeln!(
            text,
            "cp -a -- {} \"$dir/results/$member/\" || {{ result 74; exit 74; }}",
            quoted(output)
        );
    }
    text.push_str(
        r#"# A link is made once: the first attempt is the one that counts.
echo "$attempt" >"$dir/attempts/.mark.$member.$attempt"
ln "$dir/attempts/.mark.$member.$attempt" "$dir/done/$member" 2>/dev/null
rm -f "$dir/attempts/.mark.$member.$attempt"
result 0
"#,
    );
    text
}

/// The command as it is run: as it is, or by `ebbtide run`, which saves it.
fn command(stage: &crate::work::Stage, options: ScriptOptions<'_>) -> String {
    let plain = format!("sh -c {}", quoted(&stage.command));
    let Some(checkpoint) = &stage.checkpoint else {
        // The shell's own signal handling would be inherited as ignored.
        return plain;
    };
    let hours = |ms: i64| format!("{:.6}h", ms.max(1_000) as f64 / 3_600_000.0);
    let mut words = vec![
        quoted(options.ebbtide),
        "run --state-dir .run --metadata none".to_owned(),
        format!("--age {}", hours(options.age)),
        format!("--job {}", hours(options.length)),
        format!("--cost {}", hours(checkpoint.cost_ms())),
    ];
    match &options.server_type.model_text {
        Some(model) => words.push(format!("--model {}", quoted(model))),
        // Nothing is known of the server's life: notices are what it is saved by.
        None => words.push("--every 1h".to_owned()),
    }
    match checkpoint {
        Checkpoint::Commands { save, restore, .. } => {
            words.push(format!("--checkpoint-command {}", quoted(save)));
            if let Some(restore) = restore {
                words.push(format!("--restore-command {}", quoted(restore)));
            }
        }
        Checkpoint::Criu { .. } => words.push("--criu".to_owned()),
    }
    words.push(format!("-- {plain}"));
    // A signal that comes before the program listens is not to end it.
    format!("(trap '' USR1; exec {})", words.join(" "))
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
