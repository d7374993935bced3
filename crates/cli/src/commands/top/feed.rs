//! Looks at the server: when something happens there, and every few seconds in any case.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt};
use ostler_client::{Client, ClientError, EventQuery, StepView, TaskQuery, Watched};
use ostler_worker::Runtime;

use super::picture::Picture;

/// Tasks that are shown: those under way, and behind them what ended lately.
const LIVE: [&str; 4] = ["queued", "running", "waiting", "sleeping"];
const MOST_LIVE: usize = 500;
const ENDED: [&str; 5] = ["succeeded", "failed", "dead_letter", "cancelled", "dropped"];
const MOST_ENDED: usize = 50;

/// Nobody reads more pictures than this.
const AT_MOST_EVERY: Duration = Duration::from_millis(250);
const AT_LEAST_EVERY: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Feed {
    client: Client,
    runtime: Arc<dyn Runtime>,
}

impl Feed {
    pub fn new(client: Client, runtime: Arc<dyn Runtime>) -> Self {
        Self { client, runtime }
    }

    pub async fn look(&self) -> Result<Picture, ClientError> {
        let query = |states: &[&str], limit| TaskQuery {
            states: states.iter().map(|state| (*state).to_owned()).collect(),
            limit: Some(limit),
            ..TaskQuery::default()
        };
        let (live, ended) = (query(&LIVE, MOST_LIVE), query(&ENDED, MOST_ENDED));
        let (live, ended, workers) =
            tokio::join!(self.client.tasks(&live), self.client.tasks(&ended), self.client.workers());
        let (live, ended) = (live?, ended?);
        // Whoever may see only a namespace is not shown who works for others.
        let workers = match workers {
            Err(error) if !matches!(error, ClientError::Problem(_)) => return Err(error),
            workers => workers.unwrap_or_default(),
        };
        let has_more = live.next.is_some();
        Ok(Picture { tasks: live.items.into_iter().chain(ended.items).collect(), has_more, workers })
    }

    pub async fn steps(&self, namespace: &str, uid: &str) -> Result<Vec<StepView>, ClientError> {
        self.client.clone().in_namespace(namespace).steps(uid).await
    }

    /// Calls `look` whenever there may be something new to see, for ever.
    pub async fn follow(&self, mut look: impl AsyncFnMut()) {
        let mut events = self.client.watch_events(&EventQuery::default());
        let mut is_watching = true;
        loop {
            look().await;
            self.runtime.sleep(AT_MOST_EVERY).await;
            tokio::select! {
                goes_on = woken(&mut events), if is_watching => is_watching = goes_on,
                () = self.runtime.sleep(AT_LEAST_EVERY - AT_MOST_EVERY) => {}
            }
        }
    }
}

/// Whether something happened; if not, nothing more will be told, and there is still the clock.
async fn woken<T>(events: &mut (impl Stream<Item = Result<Watched<T>, ClientError>> + Unpin)) -> bool {
    loop {
        match events.next().await {
            Some(Ok(Watched::Came(_))) => return true,
            Some(Ok(Watched::Reconnecting { .. })) => {}
            Some(Err(_)) | None => return false,
        }
    }
}
