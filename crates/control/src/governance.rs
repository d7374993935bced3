//! Rules of people about agents and tools. This version keeps them and can't enforce them, so whatever they
//! would hold for is refused: a rule must not be passed over in silence.

use std::collections::BTreeSet;

use ostler_spec::{
    AgentPolicySpec, AgentSpec, Kind, PolicyScope, Reference, Resource, Spec, ToolPermissionSpec,
};

use crate::{Control, ControlError, resources::Beside};

/// A policy that holds for tasks or systems by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPolicy {
    name: String,
    tasks: Vec<Reference>,
    systems: Vec<Reference>,
}

/// Rules read at a time.
const AT_ONCE: usize = 1000;

impl Control {
    /// Refuses an agent that rules hold for. Gives back the policies that speak of tasks and systems.
    pub(crate) async fn check_governance(
        &self,
        namespace: &str,
        name: &str,
        agent: &AgentSpec,
        beside: Beside<'_>,
    ) -> Result<Vec<NamedPolicy>, ControlError> {
        // Whoever keeps a tool decides on it, and so does whoever keeps the agent.
        let homes = agent.tools.iter().map(|tool| tool.namespace_or(namespace));
        for home in homes.chain([namespace]).collect::<BTreeSet<_>>() {
            for permission in self.rules(Kind::ToolPermission, home, beside).await? {
                let Spec::ToolPermission(rule) = &permission.spec else { continue };
                let own = Reference::named(&permission.metadata.name);
                if let Some(tool) = permitted_tool(rule, &own, name, agent) {
                    return Err(unenforced(&permission, &format!("tool {:?} of agent {name:?}", tool.name)));
                }
            }
        }
        let mut named = Vec::new();
        for policy in self.rules(Kind::AgentPolicy, namespace, beside).await? {
            let Spec::AgentPolicy(rule) = &policy.spec else { continue };
            if rule.apply_mode == PolicyScope::Global || has(&rule.target_agents, namespace, name) {
                return Err(unenforced(&policy, &format!("agent {name:?}")));
            }
            named.extend(named_policy(&policy, rule));
        }
        Ok(named)
    }

    /// As they are, or will be.
    async fn rules(
        &self,
        kind: Kind,
        namespace: &str,
        beside: Beside<'_>,
    ) -> Result<Vec<Resource>, ControlError> {
        let (mut rules, mut after) = (Vec::new(), None);
        loop {
            let page = self.resources(kind, Some(namespace.to_owned()), after, AT_ONCE).await?;
            let Some(Resource { metadata, .. }) = page.last() else { break };
            after = Some((metadata.namespace.clone(), metadata.name.clone()));
            rules.extend(page);
        }
        rules.retain(|rule| beside.find(kind, namespace, &rule.metadata.name).is_none());
        rules.extend(beside.of(kind, namespace).cloned());
        Ok(rules)
    }
}

impl NamedPolicy {
    /// Refuses a task that it holds for.
    pub fn check(
        &self,
        namespace: &str,
        task: Option<&str>,
        system: Option<&str>,
    ) -> Result<(), ControlError> {
        let holds = |targets: &[Reference], name: Option<&str>| {
            name.is_some_and(|name| has(targets, namespace, name))
        };
        if holds(&self.tasks, task) || holds(&self.systems, system) {
            let what = "a policy that holds for this task";
            return Err(refusal(Kind::AgentPolicy, &self.name, what));
        }
        Ok(())
    }
}

fn named_policy(policy: &Resource, rule: &AgentPolicySpec) -> Option<NamedPolicy> {
    let named = NamedPolicy {
        name: policy.metadata.name.clone(),
        tasks: rule.target_tasks.clone(),
        systems: rule.target_systems.clone(),
    };
    (!named.tasks.is_empty() || !named.systems.is_empty()).then_some(named)
}

/// The first tool of the agent that the rule speaks of.
fn permitted_tool<'a>(
    rule: &ToolPermissionSpec,
    own: &Reference,
    name: &str,
    agent: &'a AgentSpec,
) -> Option<&'a Reference> {
    let is_meant = rule.holds_for(name);
    let subject = rule.tool_ref.as_ref().unwrap_or(own);
    let is_free = |tool: &Reference| agent.allowed_tools.contains(tool);
    let tools = agent.tools.iter().filter(|tool| tool.name == subject.name && !is_free(tool));
    tools.into_iter().find(|_| is_meant)
}

fn has(targets: &[Reference], namespace: &str, name: &str) -> bool {
    targets.iter().any(|target| target.name == name && target.namespace_or(namespace) == namespace)
}

fn unenforced(rule: &Resource, subject: &str) -> ControlError {
    refusal(rule.kind(), &rule.metadata.name, &format!("a rule for {subject}"))
}

fn refusal(kind: Kind, name: &str, what: &str) -> ControlError {
    ControlError::NotAvailable(format!(
        "{}/{name} is {what}, and enforcing it is not available in this version; delete it to go on without it",
        kind.singular()
    ))
}
