//! What is wrong with resources of one text only when they are taken together.

use crate::agent_system::AgentSystemSpec;
use crate::agent_system::graph::Graph;
use crate::kind::Spec;
use crate::node::{Mark, Node};
use crate::problem::{Path, Problem};
use crate::resource::Resource;
use crate::task::TaskSpec;

/// Each mistake, with its place.
pub(crate) fn mistakes(documents: &[(Resource, Node)]) -> Vec<(Option<Mark>, Problem)> {
    let mut mistakes = Vec::new();
    for (resource, node) in documents {
        let Some((task, path)) = task_in(&resource.spec) else { continue };
        let Some(system) = system_of(documents, resource, task) else { continue };
        if let Some(message) = endless(system, task) {
            let path = path.field("max_turns");
            mistakes.push((node.locate(&path), Problem::new(path, message)));
        }
    }
    mistakes
}

/// The task that a resource is or makes, and where it stands.
fn task_in(spec: &Spec) -> Option<(&TaskSpec, Path)> {
    match spec {
        Spec::Task(task) => Some((task, Path::of("spec"))),
        Spec::TaskSchedule(schedule) => {
            Some((schedule.task_template.as_deref()?, Path::of("spec.task_template")))
        }
        Spec::TaskWebhook(webhook) => {
            Some((webhook.task_template.as_deref()?, Path::of("spec.task_template")))
        }
        _ => None,
    }
}

fn system_of<'d>(
    documents: &'d [(Resource, Node)],
    resource: &Resource,
    task: &TaskSpec,
) -> Option<&'d AgentSystemSpec> {
    let named = task.system.as_ref()?;
    let namespace = named.namespace_or(&resource.metadata.namespace);
    documents.iter().find_map(|(other, _)| match &other.spec {
        Spec::AgentSystem(system)
            if other.metadata.name == named.name && other.metadata.namespace == namespace =>
        {
            Some(system)
        }
        _ => None,
    })
}

/// Agents that send to each other in a circle stop only where a task bounds their turns.
fn endless(system: &AgentSystemSpec, task: &TaskSpec) -> Option<String> {
    if task.max_turns > 0 {
        return None;
    }
    let mut cycle = Graph::of(system).cycle()?;
    let foremost = (0..cycle.len()).min_by_key(|place| cycle[*place]).unwrap_or(0);
    cycle.rotate_left(foremost);
    let first = cycle.first().copied();
    let names: Vec<String> =
        cycle.iter().copied().chain(first).map(|number| system.agents[number].to_string()).collect();
    let round = names.join(" -> ");
    Some(format!(
        "required for a system that goes in circles ({round}): expected a whole number of at least 1"
    ))
}
