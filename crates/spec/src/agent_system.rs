//! AgentSystem: a graph of agents, and what may be wrong with one.

pub mod graph;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::choice::choice;
use crate::condition::{self, Condition};
use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::{Path, Problem};
use crate::reference::Reference;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSystemSpec {
    /// The agents that take part. Without a graph they work one behind the other, in this order.
    #[schemars(length(min = 1))]
    pub agents: Vec<Reference>,
    /// Where the work of each agent goes. An agent that nobody sends to begins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub graph: BTreeMap<String, GraphNode>,
    /// A ContextAdapter that the input goes through first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_adapter: Option<Reference>,
    /// Asks a person to look at the result of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_review: Option<Review>,
    /// Offers the system to other agents over A2A.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a2a: Option<SystemA2a>,
}

/// One agent's place in the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GraphNode {
    /// The one agent behind this; the short form of a single edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Reference>,
    /// The agents behind this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// What to wait for where several agents send here; where they don't, it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,
    /// Agents that this one may hand parts of its work to, each as an edge or by its name alone.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "restore_delegates")]
    #[schemars(with = "Vec<Delegate>")]
    pub delegates: Vec<Edge>,
    /// What to wait for of the delegates; where there are none, it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate_join: Option<Join>,
    /// Asks a person to look at this agent's result before it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The agent it leads to.
    pub to: Reference,
    /// For people to sort by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// For people to read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy: BTreeMap<String, String>,
    /// Taken only if the output says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// A delegate as it is written: with what is said of it, or by its name alone.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Delegate {
    Full(Box<Edge>),
    Named(Reference),
}

impl Edge {
    fn to(agent: Reference) -> Self {
        Self { to: agent, ..Self::default() }
    }
}

fn restore_delegates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Edge>, D::Error> {
    let delegates = Vec::<Delegate>::deserialize(deserializer)?;
    let edge = |delegate| match delegate {
        Delegate::Full(edge) => *edge,
        Delegate::Named(agent) => Edge::to(agent),
    };
    Ok(delegates.into_iter().map(edge).collect())
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Join {
    /// Whether all who send must have sent.
    pub mode: JoinMode,
    /// So many of those who send must have sent, or all where there are fewer; 0 is not set.
    pub quorum_count: u32,
    /// This share of those who send must have sent, in percent; 0 is not set.
    pub quorum_percent: u32,
    /// What happens where one who should have sent failed.
    pub on_failure: JoinFailure,
}

choice! { JoinMode { #[default] WaitForAll = "wait_for_all", Quorum = "quorum" } }

choice! {
    JoinFailure { #[default] DeadLetter = "deadletter", Skip = "skip", ContinuePartial = "continue_partial" }
}

/// A person's look at an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// Names this checkpoint.
    pub checkpoint_id: String,
    /// What people see it called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What the person is told to look for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long an answer is waited for.
    #[serde(default = "review_ttl")]
    pub ttl: GoDuration,
    /// Whether the agent may be sent back to its work.
    #[serde(default = "yes")]
    pub allow_request_changes: bool,
    /// How often it may be; 0 is the default.
    #[serde(default = "review_cycles")]
    pub max_review_cycles: u32,
}

fn review_ttl() -> GoDuration {
    GoDuration::from_secs(600)
}

fn yes() -> bool {
    true
}

fn review_cycles() -> u32 {
    3
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SystemA2a {
    /// Whether it is offered.
    pub enabled: bool,
    /// Who may call it.
    pub auth: A2aAuth,
}

choice! { A2aAuth { Public = "public", #[default] Bearer = "bearer" } }

impl Declared for AgentSystemSpec {
    const NAME: &'static str = "AgentSystem";
    const PLURAL: &'static str = "agent-systems";
    const SHORT_NAMES: &'static [&'static str] = &["sys", "system", "systems"];
    const SUMMARY: &'static str = "A graph of agents that work on one task.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        fields.require("agents");
        Self {
            agents: fields.distinct("agents"),
            graph: fields.map_of("graph", read_node),
            context_adapter: fields.optional("context_adapter"),
            completion_review: fields.optional_child("completion_review", read_review),
            a2a: fields.optional_child("a2a", |fields| SystemA2a {
                enabled: fields.flag("enabled").unwrap_or(false),
                auth: fields.optional("auth").unwrap_or_default(),
            }),
        }
    }

    fn settle(&mut self, own: &str) {
        self.agents.iter_mut().for_each(|agent| agent.settle(own));
        let prefix = format!("{own}/");
        let at_home = |name: String| name.strip_prefix(&prefix).map(str::to_owned).unwrap_or(name);
        self.graph = std::mem::take(&mut self.graph)
            .into_iter()
            .map(|(name, mut node)| {
                let to = |edge: &mut Edge| edge.to.settle(own);
                node.next.iter_mut().for_each(|next| next.settle(own));
                node.edges.iter_mut().chain(&mut node.delegates).for_each(to);
                (at_home(name), node)
            })
            .collect();
    }

    fn mistakes(&self) -> Vec<Problem> {
        let mut problems = repeated(&self.agents);
        problems.extend(graph::mistakes(self));
        problems.extend(self.repeated_checkpoints());
        problems
    }

    fn unsupported(&self) -> Vec<Problem> {
        let mut refusals = Refusals::none();
        refusals.refuse_if(
            self.context_adapter.is_some(),
            "spec.context_adapter",
            "the field context_adapter",
        );
        refusals.refuse_if(
            self.completion_review.is_some(),
            "spec.completion_review",
            "the field completion_review",
        );
        let offered = self.a2a.as_ref().is_some_and(|a2a| a2a.enabled);
        refusals.refuse_if(offered, "spec.a2a.enabled", "a2a");
        let mut problems = refusals.into_problems();
        problems.extend(graph::unsupported(self));
        problems
    }
}

/// Agents that are named twice, as `a` and as `own/a`: each takes part once.
fn repeated(agents: &[Reference]) -> Vec<Problem> {
    let again = agents.iter().enumerate().filter(|(index, agent)| agents[..*index].contains(agent));
    let told = again.map(|(index, agent)| {
        Problem::new(Path::of("spec.agents").index(index), format!("the agent {agent} is named already"))
    });
    told.collect()
}

impl AgentSystemSpec {
    /// An answer names its checkpoint, so that two of one name could not be told apart.
    fn repeated_checkpoints(&self) -> Vec<Problem> {
        let of_nodes = self
            .graph
            .iter()
            .filter_map(|(name, node)| Some((Path::node(name).field("review"), node.review.as_ref()?)));
        let of_whole =
            self.completion_review.iter().map(|review| (Path::of("spec.completion_review"), review));
        let mut seen = BTreeMap::new();
        let mut problems = Vec::new();
        for (path, review) in of_nodes.chain(of_whole) {
            let path = path.field("checkpoint_id");
            if let Some(first) = seen.get(&review.checkpoint_id) {
                let message = format!("{:?} is given already, as {first}", review.checkpoint_id);
                problems.push(Problem::new(path, message));
            } else {
                seen.insert(&review.checkpoint_id, path.to_string());
            }
        }
        problems
    }
}

impl Path {
    fn node(name: &str) -> Self {
        Self::of("spec.graph").field(name)
    }
}

fn read_node(fields: &mut Fields<'_, '_>) -> GraphNode {
    GraphNode {
        next: fields.optional("next"),
        edges: fields.objects("edges", read_edge),
        join: fields.optional_child("join", read_join),
        delegates: fields.objects_or_words("delegates", read_edge, Edge::to),
        delegate_join: fields.optional_child("delegate_join", read_join),
        review: fields.optional_child("review", read_review),
    }
}

fn read_edge(fields: &mut Fields<'_, '_>) -> Edge {
    Edge {
        to: fields.required("to"),
        labels: fields.strings("labels"),
        policy: fields.strings("policy"),
        condition: fields.optional_child("condition", condition::read),
    }
}

fn read_join(fields: &mut Fields<'_, '_>) -> Join {
    Join {
        mode: fields.optional("mode").unwrap_or_default(),
        quorum_count: fields.count("quorum_count", 0).unwrap_or(0),
        quorum_percent: fields.whole("quorum_percent", 0..=100).unwrap_or(0),
        on_failure: fields.optional("on_failure").unwrap_or_default(),
    }
}

fn read_review(fields: &mut Fields<'_, '_>) -> Review {
    Review {
        checkpoint_id: fields.required("checkpoint_id"),
        display_name: fields.optional("display_name"),
        reason: fields.optional("reason"),
        ttl: fields.positive_duration("ttl").unwrap_or_else(review_ttl),
        allow_request_changes: fields.flag("allow_request_changes").unwrap_or(true),
        max_review_cycles: fields.count_or_default("max_review_cycles").unwrap_or_else(review_cycles),
    }
}
