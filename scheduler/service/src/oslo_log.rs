//! Log lines as oslo.log writes them, for collectors that parse those of OpenStack's services.
//!
//! The formats are the defaults of `[DEFAULT] logging_context_format_string`,
//! `logging_default_format_string` and `logging_user_identity_format` (`oslo_log/_options.py`).
//! What a line has beyond its message follows as `key=value`.

use std::fmt::{self, Write as _};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

const TIME: &[BorrowedFormatItem<'static>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:3]");

/// The format. Times are local, as Python's are; a change to summer time shows after a restart.
pub(crate) struct OsloFormat {
    offset: UtcOffset,
}

impl OsloFormat {
    /// Takes the time zone of this machine. Only a process with one thread can ask for it; else
    /// times are UTC.
    pub(crate) fn new() -> Self {
        Self {
            offset: UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC),
        }
    }
}

/// Keeps what a span knows of its request, for all lines within it.
pub(crate) struct RequestFields;

/// The fields of a span that are of oslo.log's context.
const OF_CONTEXT: [&str; 6] = [
    "global_request_id",
    "request_id",
    "user",
    "project",
    "user_domain",
    "project_domain",
];

/// What oslo.log calls the context.
#[derive(Clone, Default)]
struct RequestContext {
    global_request_id: Option<String>,
    request_id: Option<String>,
    user: Option<String>,
    project: Option<String>,
    user_domain: Option<String>,
    project_domain: Option<String>,
}

impl Visit for RequestContext {
    fn record_str(&mut self, field: &Field, value: &str) {
        let place = match field.name() {
            "global_request_id" => &mut self.global_request_id,
            "request_id" => &mut self.request_id,
            "user" => &mut self.user,
            "project" => &mut self.project,
            "user_domain" => &mut self.user_domain,
            "project_domain" => &mut self.project_domain,
            _ => return,
        };
        *place = Some(value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl fmt::Display for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |field: &Option<String>, unknown: &str| match field {
            Some(text) if !text.is_empty() => text.clone(),
            _ => unknown.to_owned(),
        };
        // Python writes None for the one that is not of `user_identity`. The domain and the system
        // that a token may be for are not said by Nova's calls to a scheduler.
        write!(
            f,
            "{} {} {} {} - - {} {}",
            known(&self.global_request_id, "None"),
            known(&self.request_id, "-"),
            known(&self.user, "-"),
            known(&self.project, "-"),
            known(&self.user_domain, "-"),
            known(&self.project_domain, "-"),
        )
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RequestFields {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = attributes.metadata().fields().iter();
        if !fields.any(|field| OF_CONTEXT.contains(&field.name())) {
            return;
        }
        let Some(span) = context.span(id) else {
            return;
        };
        // What the spans around it know, and what this one adds.
        let around = span.scope().skip(1).find_map(|outer| {
            let extensions = outer.extensions();
            extensions.get::<RequestContext>().cloned()
        });
        let mut known = around.unwrap_or_default();
        attributes.record(&mut known);
        span.extensions_mut().insert(known);
    }
}

/// Message, instance and the other fields of a line.
#[derive(Default)]
struct Line {
    message: String,
    instance: Option<String>,
    rest: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "instance" => self.instance = Some(value.to_owned()),
            name => {
                let _ = write!(self.rest, " {name}={value}");
            }
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl<S, N> FormatEvent<S, N> for OsloFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        let now = OffsetDateTime::from(ebbtide_runtime::clock::wall()).to_offset(self.offset);
        let now = now.format(TIME).map_err(|_| fmt::Error)?;
        let level = match *metadata.level() {
            Level::ERROR => "ERROR",
            Level::WARN => "WARNING",
            Level::INFO => "INFO",
            Level::DEBUG | Level::TRACE => "DEBUG",
        };
        write!(
            out,
            "{now} {} {level} {} [",
            std::process::id(),
            metadata.target().replace("::", ".")
        )?;
        let spans = context.event_scope().into_iter().flatten();
        let known = spans.into_iter().find_map(|span| {
            let extensions = span.extensions();
            extensions.get::<RequestContext>().map(ToString::to_string)
        });
        out.write_str(known.as_deref().unwrap_or("-"))?;
        out.write_str("] ")?;
        if let Some(instance) = &line.instance {
            write!(out, "[instance: {instance}] ")?;
        }
        // A line feed would begin a line that no collector can read.
        for part in [&line.message, &line.rest] {
            out.write_str(&part.replace('\n', "\\n"))?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt as _;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged, without the time.
    fn logged(work: impl FnOnce()) -> Vec<String> {
        let log = Log::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .event_format(OsloFormat {
                offset: UtcOffset::UTC,
            })
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry()
            .with(RequestFields)
            .with(lines);
        tracing::subscriber::with_default(subscriber, work);
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| {
            let (time, rest) = line.split_at("2026-11-26 19:00:00.000 ".len());
            let digits: String = time
                .chars()
                .map(|c| if c.is_ascii_digit() { '0' } else { c })
                .collect();
            assert_eq!(digits, "0000-00-00 00:00:00.000 ");
            rest.replace(&format!("{} ", std::process::id()), "PID ")
        });
        lines.collect()
    }

    #[test]
    fn a_line_within_a_request_has_its_ids_and_its_user() {
        let lines = logged(|| {
            let call = tracing::info_span!("rpc", method = "m", request_id = "req-1");
            let _in = call.enter();
            let span = tracing::info_span!(
                "caller",
                global_request_id = "",
                user = "u1",
                project = "p1",
                user_domain = "default",
                project_domain = "default"
            );
            let _in = span.enter();
            let inner = tracing::info_span!("part", of = 1);
            let _in = inner.enter();
            tracing::warn!(target: "ebbtide_nova_service::select", code = "EB-X-001", host = "c1", "no room");
        });
        assert_eq!(
            lines,
            [
                "PID WARNING ebbtide_nova_service.select [None req-1 u1 p1 - - default default] no room code=EB-X-001 host=c1"
            ]
        );
    }

    #[test]
    fn a_line_of_no_request_has_a_dash_and_one_line_it_stays() {
        let lines = logged(|| {
            tracing::info!(target: "t", instance = "7f", "two\nlines");
            tracing::debug!(target: "t", n = 3, "d");
        });
        assert_eq!(
            lines,
            [
                "PID INFO t [-] [instance: 7f] two\\nlines",
                "PID DEBUG t [-] d n=3"
            ]
        );
    }
}
