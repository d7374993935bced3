//! What is wrong with resources only when they are taken together.

use std::collections::BTreeMap;

use crate::agent_system::AgentSystemSpec;
use crate::agent_system::graph::Graph;
use crate::kind::Spec;
use crate::problem::{Path, Problem};
use crate::resource::Resource;
use crate::task::TaskSpec;

/// The systems among them, by namespace and name.
type Systems<'r> = BTreeMap<(&'r str, &'r str), &'r AgentSystemSpec>;

/// Each mistake, with the number of the resource that has it.
pub(crate) fn mistakes(resources: &[&Resource]) -> Vec<(usize, Problem)> {
    let systems = systems(resources);
    let mistake = |resource: &Resource| {
        let system = systems.get(&resource.system_asked()?)?;
        resource.mistake_beside(system)
    };
    let numbered = resources.iter().enumerate();
    numbered.filter_map(|(number, resource)| Some((number, mistake(resource)?))).collect()
}

impl Resource {
    /// The namespace and name of the system that is to work on the task that this is or makes.
    pub fn system_asked(&self) -> Option<(&str, &str)> {
        let (task, _) = task_in(&self.spec)?;
        let named = task.system.as_ref()?;
        Some((named.namespace_or(&self.metadata.namespace), &named.name))
    }

    /// What is wrong with it where that system is this one.
    pub fn mistake_beside(&self, system: &AgentSystemSpec) -> Option<Problem> {
        let (task, path) = task_in(&self.spec)?;
        let message = endless(system, task)?;
        Some(Problem::new(path.field("max_turns"), message))
    }
}

fn systems<'r>(resources: &[&'r Resource]) -> Systems<'r> {
    let system = |resource: &'r Resource| match &resource.spec {
        Spec::AgentSystem(system) => Some((place(resource), system)),
        _ => None,
    };
    resources.iter().copied().filter_map(system).collect()
}

fn place(resource: &Resource) -> (&str, &str) {
    (&resource.metadata.namespace, &resource.metadata.name)
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
