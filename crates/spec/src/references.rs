//! Which other resources a resource names, and where. Whether they are there is not known here.

use crate::agent::{comes_with_memory, is_of_mcp_server};
use crate::kind::{Kind, Spec};
use crate::problem::Path;
use crate::reference::Reference;
use crate::resource::Resource;

/// One resource, as another names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'r> {
    pub path: Path,
    pub kind: Kind,
    pub reference: &'r Reference,
}

impl Resource {
    /// Those without which it can't be used. Rules may speak of what does not exist yet, so what they are about is not
    /// among them.
    pub fn references(&self) -> Vec<Named<'_>> {
        let mut found = Found(Vec::new());
        match &self.spec {
            Spec::Agent(agent) => {
                found.one("spec.model_ref", Kind::ModelEndpoint, &agent.model_ref);
                found.all("spec.fallback_model_refs", Kind::ModelEndpoint, &agent.fallback_model_refs);
                found.all("spec.tools", Kind::Tool, &agent.tools);
                found.all("spec.roles", Kind::AgentRole, &agent.roles);
                found.some("spec.memory.ref", Kind::Memory, agent.memory.reference.as_ref());
            }
            Spec::AgentSystem(system) => {
                found.all("spec.agents", Kind::Agent, &system.agents);
                found.some("spec.context_adapter", Kind::ContextAdapter, system.context_adapter.as_ref());
            }
            Spec::Task(task) => {
                found.some("spec.agent", Kind::Agent, task.agent.as_ref());
                found.some("spec.system", Kind::AgentSystem, task.system.as_ref());
            }
            Spec::Tool(tool) => {
                found.some("spec.mcp_server_ref", Kind::McpServer, tool.mcp_server_ref.as_ref());
            }
            Spec::TaskSchedule(schedule) => {
                found.some("spec.task_ref", Kind::Task, schedule.task_ref.as_ref());
            }
            Spec::TaskWebhook(webhook) => {
                found.some("spec.task_ref", Kind::Task, webhook.task_ref.as_ref());
            }
            Spec::ContextAdapter(adapter) => found.one("spec.tool_ref", Kind::Tool, &adapter.tool_ref),
            Spec::Memory(memory) => {
                found.some("spec.embedding_model", Kind::ModelEndpoint, memory.embedding_model.as_ref());
            }
            Spec::Session(session) => found.one("spec.system", Kind::AgentSystem, &session.system),
            Spec::EvalRun(run) => {
                found.one("spec.dataset_ref", Kind::EvalDataset, &run.dataset_ref);
                found.one("spec.system", Kind::AgentSystem, &run.system);
            }
            Spec::Quota(_)
            | Spec::ModelEndpoint(_)
            | Spec::Worker(_)
            | Spec::Secret(_)
            | Spec::SealedSecret(_)
            | Spec::McpServer(_)
            | Spec::AgentRole(_)
            | Spec::ToolPermission(_)
            | Spec::AgentPolicy(_)
            | Spec::ToolApproval(_)
            | Spec::TaskApproval(_)
            | Spec::EvalDataset(_) => {}
        }
        found.0
    }
}

struct Found<'r>(Vec<Named<'r>>);

impl<'r> Found<'r> {
    fn one(&mut self, path: &str, kind: Kind, reference: &'r Reference) {
        self.add(Path::of(path), kind, reference);
    }

    fn some(&mut self, path: &str, kind: Kind, reference: Option<&'r Reference>) {
        reference.into_iter().for_each(|reference| self.one(path, kind, reference));
    }

    fn all(&mut self, path: &str, kind: Kind, references: &'r [Reference]) {
        for (index, reference) in references.iter().enumerate() {
            self.add(Path::of(path).index(index), kind, reference);
        }
    }

    /// What comes with a memory or with an MCP server is no resource of its own.
    fn add(&mut self, path: Path, kind: Kind, reference: &'r Reference) {
        let is_given = kind == Kind::Tool && (is_of_mcp_server(reference) || comes_with_memory(reference));
        if !is_given {
            self.0.push(Named { path, kind, reference });
        }
    }
}
