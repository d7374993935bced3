//! What is to be otherwise where a task is asked for again: fields of its spec, and parts of its input.

use ostler_control::ControlError;
use ostler_spec::{Spec, TaskMode, TaskSpec};
use serde_json::{Map, Value, json};

/// What text under a name that is no field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// A part of the input,
    IsInput,
    /// or a mistake.
    IsUnknown,
}

/// The spec with these fields in the place of its own, in either spelling, read like any other manifest. The input goes on to
/// hold what nobody speaks of.
pub fn changed_spec(
    spec: &TaskSpec,
    overrides: Map<String, Value>,
    stray: Stray,
) -> Result<TaskSpec, ControlError> {
    let mut fields = match serde_json::to_value(spec) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    };
    let mut input = Map::new();
    for (name, value) in overrides {
        let field = snake_case(&name);
        match value {
            Value::Object(parts) if field == "input" => input.extend(parts),
            Value::String(_) if stray == Stray::IsInput && !TaskSpec::FIELDS.contains(&field.as_str()) => {
                input.insert(name, value);
            }
            value => {
                if field == "retry" {
                    follow_again(spec, &mut fields);
                }
                fields.insert(field, value);
            }
        }
    }
    if let Value::Object(former) = fields.entry("input").or_insert_with(|| Map::new().into()) {
        former.extend(input);
    }
    read(&fields)
}

/// Where the two were one, how often an agent's work is tried follows what is said of the whole now.
fn follow_again(spec: &TaskSpec, fields: &mut Map<String, Value>) {
    if let Some(Value::Object(each)) = fields.get_mut("message_retry")
        && spec.message_retry.follows(&spec.retry)
    {
        let has_own_pause = spec.message_retry.backoff != spec.retry.backoff;
        each.retain(|name, _| name != "max_attempts" && (name != "backoff" || has_own_pause));
    }
}

fn read(fields: &Map<String, Value>) -> Result<TaskSpec, ControlError> {
    let document = json!({"kind": "Task", "metadata": {"name": "again"}, "spec": fields});
    let read = ostler_spec::from_json(&document).map_err(ControlError::Invalid)?;
    match read.spec {
        Spec::Task(spec) if spec.mode == TaskMode::Template => {
            Err(ControlError::BadReference("what is asked for again is run, and no template".to_owned()))
        }
        Spec::Task(spec) => Ok(spec),
        _ => Err(ControlError::BadReference("only a task can be asked for again".to_owned())),
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
