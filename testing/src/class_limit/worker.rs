//! A worker with many lives: each begins with a registration, gives up what the one before it held, claims and finishes
//! runs, and mostly ends where nobody expects it.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use ostler_kernel::{
    Lease, RunTag, Worker,
    run::{RunView, take_over::Cause},
    worker::{Offer, register},
};
use ostler_store::{
    Claim, Store, StoreError, StoreExt, TaskFilter,
    conformance::{dice::Dice, world::World},
};

use super::Pace;

/// Ends when there is nothing left to do.
pub async fn work(store: Arc<dyn Store>, number: usize, longest_life: u64, pace: Pace, mut dice: Dice) {
    let world = World::beside(store, number as u32 + 1);
    let name = format!("worker-{number}");
    loop {
        let (instance, polls) = (dice.roll(), dice.below(longest_life));
        match mortal(live(&world, &name, instance, &pace), polls).await {
            Some(Ok(Life::NothingLeft)) => return,
            Some(Ok(Life::Overtaken) | Err(_)) | None => {
                pace.send_modify(|done| done.worker_deaths += 1);
                // On a store that never has to wait a life could end at once, again and again.
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Lets a future go on so many times, and then drops it where it waits.
async fn mortal<F: Future>(future: F, mut polls: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if polls == 0 => Poll::Ready(None),
        Poll::Pending => {
            polls -= 1;
            Poll::Pending
        }
    })
    .await
}

/// How a life ends that came to its end.
enum Life {
    NothingLeft,
    /// A registration that an earlier life had sent came first.
    Overtaken,
}

async fn live(world: &World, name: &str, instance: u64, pace: &Pace) -> Result<Life, StoreError> {
    let store = &*world.store;
    let former = store.workers().await?.into_iter().find(|worker| worker.name == name);
    let (worker, bundle) = register(name, instance, Offer::default(), former.as_ref(), world.now());
    if store.commit(vec![bundle]).await?.iter().any(Result::is_err) {
        return Ok(Life::Overtaken);
    }
    give_up_former(world, &worker).await?;
    let mut claim = 0;
    loop {
        claim += 1;
        let lease = Lease { worker: name.to_owned(), incarnation: worker.incarnation, claim };
        let claimed = store.claim(Claim::new(lease, 3, world.now())).await?;
        if claimed.is_empty() && is_all_done(store).await? {
            return Ok(Life::NothingLeft);
        }
        for claimed in claimed {
            pace.send_modify(|done| done.claimed += 1);
            if let Some(view) = running(store, claimed.run.id).await? {
                store.commit(vec![world.finish(&view, "done")]).await?;
            }
        }
    }
}

/// What a former incarnation holds is free at once.
async fn give_up_former(world: &World, worker: &Worker) -> Result<(), StoreError> {
    for run in world.store.leased(Some(worker.name.clone())).await? {
        let is_former = run.lease().is_some_and(|lease| lease.incarnation < worker.incarnation);
        if is_former && let Some(view) = running(&*world.store, run.id).await? {
            world.store.commit(vec![world.lose(&view, Cause::Restarted)]).await?;
        }
    }
    Ok(())
}

async fn running(store: &dyn Store, run: ostler_kernel::RunId) -> Result<Option<RunView>, StoreError> {
    let view = store.run_view(run).await?;
    Ok(view.map(|view| *view).filter(|view| view.run.tag() == RunTag::Running))
}

async fn is_all_done(store: &dyn Store) -> Result<bool, StoreError> {
    let states = ["queued", "running"].map(str::to_owned).to_vec();
    let filter = TaskFilter { states, limit: 1, ..TaskFilter::default() };
    Ok(store.tasks(filter).await?.is_empty())
}
