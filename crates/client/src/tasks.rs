//! Tasks: create, look at, cancel, ask for again, put away. A task is named by its name or its uid.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Client, ClientError, Page,
    transport::ANSWER_WITHIN,
    view::{EventView, EventsPage, LogView, MessageView, StepView, TaskView},
};

#[derive(Debug, Clone, PartialEq)]
pub struct CreatedTask {
    pub task: TaskView,
    /// The same request was accepted before, under its idempotency key.
    pub existed: bool,
}

/// Which tasks to list, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// Only tasks in one of these states; empty means any.
    pub states: Vec<String>,
    /// Those that were put away too.
    pub archived: bool,
    /// Only those whose labels are so.
    pub selector: Option<String>,
    pub limit: Option<usize>,
    /// The `next` of the page before.
    pub before: Option<String>,
}

impl Client {
    /// Sends a Task manifest. Its own namespace counts, or else the client's.
    pub async fn create_task<T: Serialize + ?Sized>(&self, manifest: &T) -> Result<CreatedTask, ClientError> {
        let manifest = serde_json::to_value(manifest).map_err(ClientError::BadAnswer)?;
        let path = ["v1", "tasks"];
        let request = match manifest.pointer("/metadata/namespace") {
            Some(_) => self.request(Method::POST, &path)?,
            None => self.request_in_namespace(Method::POST, &path, &[])?,
        };
        let request = request.json(&manifest);
        let answer = self.send(request.timeout(ANSWER_WITHIN)).await?;
        let existed = answer.status() == StatusCode::OK;
        let body = answer.bytes().await.map_err(|error| self.failed(error))?;
        let task = serde_json::from_slice(&body).map_err(ClientError::BadAnswer)?;
        Ok(CreatedTask { task, existed })
    }

    pub async fn task(&self, task: &str) -> Result<TaskView, ClientError> {
        self.read(self.request_in_namespace(Method::GET, &["v1", "tasks", task], &[])?).await
    }

    pub async fn tasks(&self, query: &TaskQuery) -> Result<Page<TaskView>, ClientError> {
        let states = query.states.join(",");
        let limit = query.limit.map(|limit| limit.to_string());
        let mut pairs = Vec::new();
        pairs.extend(Some(("state", states.as_str())).filter(|(_, states)| !states.is_empty()));
        pairs.extend(query.archived.then_some(("archived", "true")));
        pairs.extend(query.selector.as_deref().map(|selector| ("labelSelector", selector)));
        pairs.extend(limit.as_deref().map(|limit| ("limit", limit)));
        pairs.extend(query.before.as_deref().map(|before| ("before", before)));
        self.read(self.request_in_namespace(Method::GET, &["v1", "tasks"], &pairs)?).await
    }

    pub async fn cancel(&self, task: &str, reason: Option<&str>) -> Result<TaskView, ClientError> {
        let request = self.request_in_namespace(Method::POST, &["v1", "tasks", task, "cancel"], &[])?;
        let request = match reason {
            Some(reason) => request.json(&json!({ "reason": reason })),
            None => request,
        };
        self.read(request).await
    }

    /// Asks for the same again, with other input where there is some: a new task, whose label names this one.
    pub async fn retry(&self, task: &str, input: &BTreeMap<String, String>) -> Result<TaskView, ClientError> {
        let request = self.request_in_namespace(Method::POST, &["v1", "tasks", task, "retry"], &[])?;
        let request = match input.is_empty() {
            true => request,
            false => request.json(&json!({ "overrides": { "input": input } })),
        };
        self.read(request).await
    }

    /// Runs a template, or a task that has ended once more: a new task under the next number, `digest-run-3`.
    /// What the manifest says beside the name is otherwise this time.
    pub async fn rerun(&self, manifest: &Value) -> Result<TaskView, ClientError> {
        let request = self.request_in_namespace(Method::POST, &["v1", "tasks"], &[("rerun", "true")])?;
        self.read(request.json(manifest)).await
    }

    /// What the agents of a system have sent each other for this task.
    pub async fn messages(&self, task: &str) -> Result<Vec<MessageView>, ClientError> {
        #[derive(Deserialize)]
        struct Messages {
            messages: Vec<MessageView>,
        }
        let path = ["v1", "tasks", task, "messages"];
        let answer: Messages = self.read(self.request_in_namespace(Method::GET, &path, &[])?).await?;
        Ok(answer.messages)
    }

    pub async fn archive(&self, task: &str) -> Result<TaskView, ClientError> {
        self.read(self.request_in_namespace(Method::POST, &["v1", "tasks", task, "archive"], &[])?).await
    }

    pub async fn steps(&self, task: &str) -> Result<Vec<StepView>, ClientError> {
        #[derive(Deserialize)]
        struct Steps {
            items: Vec<StepView>,
        }
        let path = ["v1", "tasks", task, "steps"];
        let steps: Steps = self.read(self.request_in_namespace(Method::GET, &path, &[])?).await?;
        Ok(steps.items)
    }

    /// A part of the task's log: what stands behind `after`, at most `limit` events (by default a hundred).
    pub async fn events(
        &self,
        task: &str,
        after: u64,
        limit: Option<usize>,
    ) -> Result<EventsPage, ClientError> {
        let after = after.to_string();
        let limit = limit.map(|limit| limit.to_string());
        let mut pairs = vec![("after", after.as_str())];
        pairs.extend(limit.as_deref().map(|limit| ("limit", limit)));
        self.read(self.request_in_namespace(Method::GET, &["v1", "tasks", task, "events"], &pairs)?).await
    }

    /// The task's whole log as it is now.
    pub async fn all_events(&self, task: &str) -> Result<Vec<EventView>, ClientError> {
        const AT_ONCE: usize = 1000;
        let mut events = Vec::new();
        loop {
            let after = events.last().map_or(0, |event: &EventView| event.seq);
            let page = self.events(task, after, Some(AT_ONCE)).await?;
            let is_last = page.items.len() < AT_ONCE;
            events.extend(page.items);
            if is_last {
                return Ok(events);
            }
        }
    }

    /// The task's log as lines for people.
    pub async fn logs(&self, task: &str) -> Result<LogView, ClientError> {
        self.read(self.request_in_namespace(Method::GET, &["v1", "tasks", task, "logs"], &[])?).await
    }

    /// The same of an agent, over its last tasks.
    pub async fn agent_logs(&self, agent: &str) -> Result<LogView, ClientError> {
        self.read(self.request_in_namespace(Method::GET, &["v1", "agents", agent, "logs"], &[])?).await
    }
}
