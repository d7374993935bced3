//! A line of the log as one JSON object: what happened, and beside it, not below it, in which task and run it did.

use std::fmt;

use serde_json::{Map, Value};
use tracing::{Event, Subscriber, field::Visit};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormattedFields,
        format::{JsonFields, Writer},
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

pub struct Flat;

impl<S: Subscriber + for<'a> LookupSpan<'a>> FormatEvent<S, JsonFields> for Flat {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Map::new();
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        event.record(&mut Fields(&mut line));
        line.insert("target".to_owned(), event.metadata().target().into());
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<FormattedFields<JsonFields>>() else { continue };
            if let Ok(Value::Object(fields)) = serde_json::from_str(fields.as_str()) {
                // What is said nearer to the event counts.
                for (name, value) in fields {
                    line.entry(name).or_insert(value);
                }
            }
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

struct Fields<'l>(&'l mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &tracing::field::Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &tracing::field::Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &tracing::field::Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &tracing::field::Field, value: f64) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_says_which_run_it_is_about() {
        let kept = Kept::default();
        let writer = kept.clone();
        let logger = tracing_subscriber::fmt().json().event_format(Flat).with_writer(move || writer.clone());
        tracing::subscriber::with_default(logger.finish(), || {
            let span = tracing::error_span!("run", task = "task_1", run = "run_1", trace_id = "0af7");
            let _in_the_run = span.enter();
            tracing::warn!(step = "run_1.2", tries = 3, "tried \"again\"");
        });
        let line: Value = serde_json::from_slice(&kept.0.lock().unwrap()).unwrap();
        let of = |name: &str| line[name].to_string();
        assert_eq!(
            (of("task"), of("run"), of("trace_id")),
            ("\"task_1\"".into(), "\"run_1\"".into(), "\"0af7\"".into())
        );
        assert_eq!(
            (of("step"), of("tries"), of("level")),
            ("\"run_1.2\"".into(), "3".into(), "\"WARN\"".into())
        );
        assert_eq!(line["message"], "tried \"again\"");
    }
}
