//! Who does a task: one agent, or the agents of a system in a line. Frozen when the task is accepted.

use ostler_kernel::task::{Stage, SystemPlan};
use ostler_spec::{AgentSystemSpec, Kind, Reference, Spec, agent_system::graph::Graph};

use crate::{
    Control, ControlError, NewTask,
    plans::{Planned, of_member},
    resources::{Beside, check_available},
};

#[derive(Debug, Clone)]
pub struct Doer {
    /// Who begins.
    pub first: Stage,
    pub system: Option<SystemPlan>,
}

/// Whether the plans of those who do a task are kept.
#[derive(Debug, Clone, Copy)]
pub enum Plans<'a> {
    Stored,
    /// For a task that is only tried, together with these.
    Tried(Beside<'a>),
}

impl<'a> Plans<'a> {
    fn beside(self) -> Beside<'a> {
        match self {
            Plans::Stored => Beside::default(),
            Plans::Tried(beside) => beside,
        }
    }
}

impl Doer {
    /// What a task for it is called after.
    pub fn name(&self) -> &str {
        self.system.as_ref().map_or(&self.first.agent, |system| &system.name)
    }
}

impl Control {
    pub(crate) async fn doer(&self, new: &NewTask, plans: Plans<'_>) -> Result<Doer, ControlError> {
        match (&new.spec.agent, &new.spec.system) {
            (Some(agent), _) => Ok(Doer { first: self.stage(new, agent, plans).await?, system: None }),
            (None, Some(system)) => self.system_doer(new, system, plans).await,
            (None, None) => Err(bad("a task names the agent or the system that does it")),
        }
    }

    async fn system_doer(
        &self,
        new: &NewTask,
        system: &Reference,
        plans: Plans<'_>,
    ) -> Result<Doer, ControlError> {
        check_home(new, system)?;
        let name = &system.name;
        let found = self.spec(Kind::AgentSystem, &new.namespace, name, plans.beside()).await?;
        let Some(spec @ Spec::AgentSystem(declared)) = &found else {
            return Err(ControlError::NotFound { kind: "AgentSystem", name: name.clone() });
        };
        check_available(Kind::AgentSystem, name, spec)?;
        let mut line = Vec::new();
        for agent in agents_in_line(declared) {
            let stage = self.stage(new, agent, plans).await;
            line.push(stage.map_err(|error| of_member(name, error))?);
        }
        match line.first().cloned() {
            Some(first) => Ok(Doer { first, system: Some(SystemPlan { name: name.clone(), line }) }),
            None => Err(bad("the system has no agents")),
        }
    }

    async fn stage(&self, new: &NewTask, agent: &Reference, plans: Plans<'_>) -> Result<Stage, ControlError> {
        check_home(new, agent)?;
        let Planned { id, plan, policies, .. } = match plans {
            Plans::Stored => self.plan(&new.namespace, &agent.name).await?,
            Plans::Tried(beside) => self.plan_unstored(&new.namespace, &agent.name, beside).await?,
        };
        let system = new.spec.system.as_ref().map(|system| system.name.as_str());
        for policy in policies.iter() {
            policy.check(&new.namespace, new.name.as_deref(), system)?;
        }
        Ok(Stage {
            agent: plan.agent.clone(),
            plan: id,
            model: plan.model.model.clone(),
            lane: self.lane(&new.namespace, &plan.agent, &new.spec),
        })
    }
}

/// Who works on it, one behind the other; nobody where the graph is not a line, which is not available.
fn agents_in_line(system: &AgentSystemSpec) -> impl Iterator<Item = &Reference> {
    let line = Graph::of(system).line().unwrap_or_default();
    line.into_iter().map(|number| &system.agents[number])
}

fn check_home(new: &NewTask, doer: &Reference) -> Result<(), ControlError> {
    if doer.namespace_or(&new.namespace) == new.namespace {
        return Ok(());
    }
    let message = format!(
        "{:?} lives in another namespace than the task, which is not available in this version",
        doer.to_string()
    );
    Err(ControlError::NotAvailable(message))
}

fn bad(message: &str) -> ControlError {
    ControlError::BadReference(message.to_owned())
}
