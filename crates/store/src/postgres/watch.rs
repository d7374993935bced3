//! Tells those who watch, on this server and on the others. Notifications are sent outside of transactions, since
//! inside they would make commits wait for each other, and coalesced: one says that there is something, not what.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use ostler_kernel::{Runtime, runtime::timeout};
use tokio::sync::{Notify, watch};
use tokio_postgres::{AsyncMessage, Client};

use super::{
    Failed, Options,
    connection::{Connection, settings, timely},
    read::{self, LogEnd},
    schema::quote,
};
use crate::Hint;

/// How often one looks whatever one was told: what was lost costs no more than this.
const SWEEP: Duration = Duration::from_secs(2);

/// Between two notifications of a server: each wakes all the others, and in a busy moment one stands for many.
const NOT_OFTENER: Duration = Duration::from_millis(4);

const BEFORE_TRYING_AGAIN: Duration = Duration::from_millis(200);

/// Every server says at each sweep that it is there. Who has heard of no other for so long is alone, and tells nobody of
/// what it does: each notification would cost it a transaction, and wake only itself.
const ALONE_AFTER: Duration = SWEEP.saturating_mul(4);

/// A change is told again at each sweep for so long: its number rises before it can be read, by as much as the longest
/// transaction takes. So is what may have changed before the first look.
const CHANGING: Duration = Duration::from_secs(20);

pub struct Notices {
    hints: watch::Sender<Hint>,
    /// What was committed here so far, for the others to hear of.
    committed: watch::Sender<Hint>,
    news: Notify,
    channel: String,
    /// Names this server in its notifications, so that it does not listen to itself.
    myself: String,
    /// Until when, on the monotonic clock, there are other servers as far as this one knows.
    others_until: watch::Sender<Duration>,
}

impl Notices {
    /// The log ends at `position`.
    pub fn new(schema: &str, runtime: &dyn Runtime, position: u64) -> Self {
        Self {
            hints: watch::Sender::new(Hint { position, ..Hint::default() }),
            committed: watch::Sender::default(),
            news: Notify::new(),
            channel: format!("ostler {schema}"),
            myself: format!("{:016x}", runtime.random()),
            others_until: watch::Sender::new(runtime.monotonic() + ALONE_AFTER),
        }
    }

    pub fn subscribe(&self) -> watch::Receiver<Hint> {
        self.hints.subscribe()
    }

    pub fn hint(&self) -> Hint {
        *self.hints.borrow()
    }

    /// This server has committed something.
    pub fn committed(&self, hint: Hint) {
        if hint == Hint::default() {
            return;
        }
        raise(&self.hints, hint);
        raise(&self.committed, hint);
        self.news.notify_one();
    }

    /// What there is since the others were told last, besides events.
    fn message(&self, told: Hint, now: Hint) -> String {
        let ready = if now.ready > told.ready { " ready" } else { "" };
        let due = if now.due > told.due { " due" } else { "" };
        let resources = if now.resources > told.resources { " resources" } else { "" };
        format!("{}{ready}{due}{resources}", self.myself)
    }

    fn is_alone(&self, runtime: &dyn Runtime) -> bool {
        runtime.monotonic() >= *self.others_until.borrow()
    }

    fn heard_of_others(&self, runtime: &dyn Runtime) {
        let was_alone = self.is_alone(runtime);
        self.others_until.send_replace(runtime.monotonic() + ALONE_AFTER);
        if was_alone {
            // They have looked when they began to listen; what was committed since then they are told now.
            self.news.notify_one();
        }
    }

    /// What another server's notification says, besides that the log has grown.
    fn heard(&self, message: &str) -> Option<Hint> {
        let (who, what) = message.split_once(' ').unwrap_or((message, ""));
        let says = |word| u64::from(what.split(' ').any(|said| said == word));
        let (ready, due, resources) = (says("ready"), says("due"), says("resources"));
        (who != self.myself).then_some(Hint { ready, due, resources, ..Hint::default() })
    }

    /// The store lacks what was here last: what was known of its log counts no more.
    fn put_back(&self, position: u64) {
        tracing::warn!(
            "the database lacks what was committed before: it was put back, or a standby took over"
        );
        self.hints.send_modify(|hint| {
            hint.position = position;
            hint.put_back += 1;
        });
    }
}

fn raise(hints: &watch::Sender<Hint>, by: Hint) {
    hints.send_modify(|hint| {
        hint.position = hint.position.max(by.position);
        hint.ready += by.ready;
        hint.due += by.due;
        hint.resources += by.resources;
    });
}

/// Passes on to the other servers that there is news here.
pub async fn tell(options: Options, runtime: Arc<dyn Runtime>, notices: Arc<Notices>) {
    let mut connection: Option<Connection> = None;
    let mut told = Hint::default();
    loop {
        notices.news.notified().await;
        if notices.is_alone(&*runtime) {
            continue;
        }
        let now = *notices.committed.borrow();
        if connection.as_ref().is_none_or(Connection::is_closed) {
            connection = Connection::open(&options, &runtime).await.ok();
        }
        let message = notices.message(told, now);
        let sent = match &connection {
            Some(open) => timely(&*runtime, notify(open, &notices, &message)).await.is_ok(),
            None => false,
        };
        if sent {
            told = now;
            runtime.sleep(NOT_OFTENER).await;
        } else {
            connection = None;
            runtime.sleep(BEFORE_TRYING_AGAIN).await;
            notices.news.notify_one();
        }
    }
}

/// Hears from the other servers. Whenever the connection was lost, everybody is told to look.
pub async fn listen(options: Options, runtime: Arc<dyn Runtime>, notices: Arc<Notices>) {
    loop {
        if let Err(error) = listen_once(&options, &runtime, &notices).await {
            tracing::debug!(%error, "the database's notifications can't be heard");
        }
        runtime.sleep(BEFORE_TRYING_AGAIN).await;
    }
}

/// On a connection of its own, and looks on another: one that waits for messages can't be asked.
async fn listen_once(options: &Options, runtime: &Arc<dyn Runtime>, notices: &Notices) -> Result<(), Failed> {
    let looking = Connection::open(options, runtime).await?;
    let (client, mut connection) = timely(&**runtime, options.database.connect(options.tls.clone())).await?;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let sql = format!("{}; LISTEN {}", settings(options), quote(&notices.channel));
    timely(&**runtime, ask(&client, &sql, &mut messages)).await?;
    let everything = Hint { ready: 1, due: 1, resources: 1, ..Hint::default() };
    timely(&**runtime, say_hello(&looking, notices)).await?;
    let mut changes = Changes::default();
    timely(&**runtime, changes.look(&looking, &**runtime)).await?;
    timely(&**runtime, look(&looking, notices, everything)).await?;
    let mut next_sweep = runtime.monotonic() + SWEEP;
    loop {
        let left = next_sweep.saturating_sub(runtime.monotonic());
        if left.is_zero() {
            // Nobody has anything to say, or it does not get through.
            timely(&**runtime, ask(&client, "", &mut messages)).await?;
            timely(&**runtime, say_hello(&looking, notices)).await?;
            let resources = timely(&**runtime, changes.look(&looking, &**runtime)).await?.into();
            timely(&**runtime, look(&looking, notices, Hint { resources, ..everything })).await?;
            next_sweep = runtime.monotonic() + SWEEP;
            continue;
        }
        let Ok(message) = timeout(&**runtime, left, messages.next()).await else { continue };
        let Some(message) = message else { return Ok(()) };
        if let AsyncMessage::Notification(notification) = message?
            && let Some(hint) = notices.heard(notification.payload())
        {
            notices.heard_of_others(&**runtime);
            timely(&**runtime, look(&looking, notices, hint)).await?;
        }
    }
}

/// Whether resources have changed, as far as sweeps see it. Whoever is told makes plans, credentials and quotas anew, which is
/// too much for every sweep.
#[derive(Default)]
struct Changes {
    number: Option<i64>,
    /// On the monotonic clock.
    told_until: Duration,
}

impl Changes {
    async fn look(&mut self, connection: &Connection, runtime: &dyn Runtime) -> Result<bool, Failed> {
        let sql = "SELECT last_value + is_called::int FROM resource_changes";
        let row = connection.one(sql, &[]).await?;
        let number = row.map(|row| row.try_get(0)).transpose()?;
        let now = runtime.monotonic();
        // At the first look too: the number may be ahead of a change that nobody will tell of.
        if self.number != number {
            self.told_until = now + CHANGING;
        }
        self.number = number;
        Ok(now < self.told_until)
    }
}

/// Asks on the connection that listens. What is heard meanwhile is passed over: whoever asks looks afterwards.
async fn ask(
    client: &Client,
    sql: &str,
    messages: &mut (impl Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Unpin),
) -> Result<(), Failed> {
    let mut asking = std::pin::pin!(client.batch_execute(sql));
    loop {
        tokio::select! {
            biased;
            asked = &mut asking => return Ok(asked?),
            message = messages.next() => match message {
                Some(message) => drop(message?),
                None => return Err(Failed::Silent),
            },
        }
    }
}

/// Tells the other servers that this one is there.
async fn say_hello(connection: &Connection, notices: &Notices) -> Result<(), Failed> {
    notify(connection, notices, &notices.myself).await
}

async fn notify(connection: &Connection, notices: &Notices, message: &str) -> Result<(), Failed> {
    connection.execute("SELECT pg_notify($1, $2)", &[&notices.channel, &message]).await?;
    Ok(())
}

/// Tells those who watch where the log ends now, and what else there is.
async fn look(connection: &Connection, notices: &Notices, hint: Hint) -> Result<(), Failed> {
    let known = notices.hint().position;
    let LogEnd { position, bound } = read::log_end(connection).await?;
    if bound <= known {
        notices.put_back(position);
    }
    raise(&notices.hints, Hint { position, ..hint });
    Ok(())
}
