//! What is done to some tasks while they are worked on: one in fourteen is cancelled, another one is given an input, at
//! different moments of their lives. As everything else it is asked again until it is answered.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use ostler_client::{Client, ClientError, TaskView};
use ostler_control::{Control, ControlError};
use ostler_kernel::TaskId;

use super::{feeder::locked, workload};

/// One task in so many.
const EVERY: u64 = 14;
const CANCELLED: u64 = 8;
const GIVEN_AN_INPUT: u64 = 3;

/// Quarters of a life, so that some are not begun and some are all but done.
const MOMENTS: u32 = 5;

/// Before a request without an answer is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

pub struct Meddler {
    /// How long a task takes, roughly.
    life: Duration,
    /// Adds inputs, for which there is no route; none where only the server may open the store.
    inputs: Option<Arc<Control>>,
    done: Mutex<Meddled>,
}

/// What was done, as far as it was acknowledged.
#[derive(Debug, Clone, Default)]
pub struct Meddled {
    /// The keys of those that were cancelled.
    pub cancelled: BTreeSet<String>,
    /// Those that were given an input.
    pub given: BTreeMap<TaskId, String>,
}

impl Meddler {
    pub fn new(life: Duration, inputs: Option<Arc<Control>>) -> Self {
        Self { life, inputs, done: Mutex::default() }
    }

    pub fn done(&self) -> Meddled {
        locked(&self.done).clone()
    }

    /// Does what is to be done to the n-th task, which was accepted. Says what no retry helps against.
    pub async fn meddle(&self, clients: &[Client], n: u64, task: &TaskView) -> Result<(), String> {
        let moment = u32::try_from(n / EVERY).unwrap_or_default() % MOMENTS;
        match n % EVERY {
            CANCELLED => {
                tokio::time::sleep(self.life * moment / (MOMENTS - 1)).await;
                self.cancel(clients, n).await.map_err(|error| format!("task {n} can't be cancelled: {error}"))
            }
            GIVEN_AN_INPUT => match &self.inputs {
                Some(control) => {
                    tokio::time::sleep(self.life * moment / (MOMENTS - 1)).await;
                    self.give(control, n, task)
                        .await
                        .map_err(|error| format!("task {n} takes no input: {error}"))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    async fn cancel(&self, clients: &[Client], n: u64) -> Result<(), ClientError> {
        let key = workload::key(n);
        for client in clients.iter().cycle().skip(n as usize % clients.len()) {
            match client.cancel(&key, Some("it is not needed any more")).await {
                Ok(_) => {
                    locked(&self.done).cancelled.insert(key);
                    break;
                }
                // It was quicker.
                Err(error) if error.code() == Some("task_ended") => break,
                Err(error) if error.may_pass() => tokio::time::sleep(AGAIN_AFTER).await,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One whose answer was lost is sent again, and is then another one.
    async fn give(&self, control: &Control, n: u64, task: &TaskView) -> Result<(), ControlError> {
        let uid = task.metadata.uid.parse::<TaskId>();
        let id = uid.map_err(|_| ControlError::Conflict(format!("{:?} is no id", task.metadata.uid)))?;
        loop {
            match control.input(id, &workload::input(n)).await {
                Ok(()) => {
                    locked(&self.done).given.insert(id, workload::key(n));
                    return Ok(());
                }
                Err(ControlError::Ended { .. }) => return Ok(()),
                Err(ControlError::Store(_) | ControlError::Contended) => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
